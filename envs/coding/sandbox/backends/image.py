"""Makes an image for the back end `docker` from this machine's interpreter, where none can be pulled."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from envs.coding.sandbox.backends.container import refusals
from envs.coding.sandbox.types import SandboxError

TAG = "localhost/rlanything-sandbox:latest"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_NAME = re.compile(
    rf"(?P<repository>(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]+)?/)?{_PART}(?:/{_PART})*)(?::(?P<version>\w[\w.-]{{0,127}}))?",
    re.ASCII,
)
"""The name of an image: where it is kept, its name, its version."""
LEFT_OUT = {"test", "tests", "idlelib", "ensurepip", "tkinter", "turtledemo", "site-packages", "__pycache__"}
FOLDERS = ("dev", "etc", "proc", "sys", "tmp", "usr/local/bin")


def repository_and_version(tag: str) -> tuple[str, str]:
    """The two parts of an image's name; the version is `latest` where none is given. Raises `SandboxError`."""
    found = _NAME.fullmatch(tag)
    if found is None:
        raise SandboxError(
            f"{tag[:200]!r} is no name of an image: small letters, digits, and . _ - / between them; then : and a "
            f"version, or none for latest; e.g. {TAG}"
        )
    return found["repository"], found["version"] or "latest"


def make(client: Any, tag: str = TAG) -> str:
    """Import an image of the interpreter, its standard library and the libraries that these link; returns its tag.

    Raises `SandboxError` for a tag that is none, where Docker refuses, and elsewhere than on Linux.
    """
    repository, version = repository_and_version(tag)
    if sys.platform != "linux":
        raise SandboxError(
            "only Linux programs run in a container: pull an image with Python 3.11 or newer instead"
        )
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w") as tree:
            _fill(tree)
        file.seek(0)
        with refusals("no image is made"):
            answer = client.api.import_image_from_data(file, repository=repository, tag=version)
            # Podman names every import `latest`.
            client.api.tag(json.loads(answer.splitlines()[-1])["status"], repository, version)
    return f"{repository}:{version}"


def _fill(tree: tarfile.TarFile) -> None:
    program, library = Path(sys.executable).resolve(), Path(sysconfig.get_path("stdlib"))
    for name in FOLDERS:
        folder = tarfile.TarInfo(name)
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
        tree.addfile(folder)
    tree.add(program, "usr/local/bin/python3", filter=_plain)
    tree.add(library, f"usr/local/lib/{library.name}", filter=_plain)
    for linked in sorted(_libraries([program, *library.glob("lib-dynload/*.so")])):
        tree.add(linked.resolve(), str(linked).lstrip("/"), filter=_plain)
    users = b"root:x:0:0::/:/bin/false\n"
    entry = tarfile.TarInfo("etc/passwd")
    entry.size = len(users)
    tree.addfile(entry, io.BytesIO(users))


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """The entry as owned by root; None for what no program under test needs."""
    if LEFT_OUT & set(Path(entry.name).parts[4:]):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


def _libraries(programs: list[Path]) -> Iterator[Path]:
    found = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False).stdout
    return iter({Path(name) for name in re.findall(r"(?:=> |^\s+)(/\S+) \(0x", found, re.MULTILINE)})
