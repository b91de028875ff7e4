"""The back end `bwrap`: an interpreter in a bubblewrap box. The default."""

from __future__ import annotations

import base64
import itertools
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from envs.coding.sandbox.backends.box import ENVIRONMENT, Box, python_command
from envs.coding.sandbox.backends.process_box import ProcessBox
from envs.coding.sandbox.backends.seccomp import compile_filter
from envs.coding.sandbox.types import MIB, MOST_WORKERS, Limits, SandboxError

LEAST_VERSION = (0, 8, 0)
LEAST_KERNEL = (5, 14)
"""The first kernel that counts processes per user namespace; older ones count over all boxes together."""
WORK = "/tmp"
PACKAGES = "/packages"
FIRST_UID = 1_000_000_000
DEVICES = ("null", "full", "random", "urandom")
"""Not zero: mapped and shared, it is memory that no process is charged for."""
STREAMS = ("stdin", "stdout", "stderr")
"""Programs open them by these names in /dev. They lead to a program's own descriptors 0, 1 and 2, as /dev/fd does."""
ROOTS = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_CHOWN")
"""What the watcher needs to drop root."""

_boxes = itertools.count()
_lent: dict[int, object] = {}


class Bubblewrap:
    """Boxes without network, with their own processes, an empty writable /tmp, and the interpreter mounted read-only.

    `packages`: a folder of packages that programs may import; None: the standard library only.
    """

    sealed = True

    def __init__(self, limits: Limits, packages: Path | None = None) -> None:
        self._limits, self._packages = limits, packages
        self._program = find_bwrap()
        self._filter = base64.b64encode(compile_filter()).decode()
        self._root = os.getuid() == 0

    def start(self) -> tuple[Box, Mapping[str, Any]]:
        """See `Backend`."""
        command = [self._program, *self._options, *self._command]
        uid = lend_uid() if self._root else None
        settings = {"uid": uid, "filter": self._filter, "folder": WORK, "count_processes": True}
        return ProcessBox(command, partial(give_back, uid)), settings

    def close(self) -> None:
        """Nothing is shared."""

    @cached_property
    def _command(self) -> list[str]:
        return python_command(os.path.realpath(sys.executable))

    @cached_property
    def _options(self) -> list[str]:
        """Root starts the box as root, and the watcher drops root. Others need a user namespace."""
        user = (
            ["--cap-drop", "ALL", *(word for name in ROOTS for word in ("--cap-add", name))]
            if self._root
            else ["--unshare-user", "--disable-userns", "--uid", "60000", "--gid", "60000"]
        )
        own = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        life = ["--die-with-parent", "--as-pid-1", "--new-session", "--hostname", "box", "--clearenv"]
        environment = ENVIRONMENT | ({"PYTHONPATH": PACKAGES} if self._packages else {})
        variables = [word for pair in environment.items() for word in ("--setenv", *pair)]
        return [*user, *own, *life, *variables, *self._mounts()]

    def _mounts(self) -> list[str]:
        disk = str(self._limits.disk_mb * MIB)
        devices = [word for name in DEVICES for word in ("--dev-bind", f"/dev/{name}", f"/dev/{name}")]
        return [
            *interpreter(),
            *(("--ro-bind", str(self._packages), PACKAGES) if self._packages else ()),
            *devices,
            *("--symlink", "/proc/self/fd", "/dev/fd"),
            *(
                word
                for k, name in enumerate(STREAMS)
                for word in ("--symlink", f"/proc/self/fd/{k}", f"/dev/{name}")
            ),
            # Read-only: a program could choose in it how long it waits for a CPU (autogroup).
            *("--proc", "/proc", "--remount-ro", "/proc"),
            *("--size", disk, "--perms", "1777", "--tmpfs", WORK),
            *("--remount-ro", "/", "--chdir", WORK),
        ]


def lend_uid() -> int:
    """The user id of a new box, unique on this machine: the kernel counts processes per user id.

    It is the one that was free for longest. Raises `SandboxError` when all ids of this process are in use.
    """
    mine = object()
    for _ in range(MOST_WORKERS):
        uid = _next_uid()
        if _lent.setdefault(uid, mine) is mine:  # atomic, so threads need no lock
            return uid
    raise SandboxError(f"this process has {MOST_WORKERS} boxes already: that is the most")


def give_back(uid: int | None) -> None:
    """Free the user id of a box that has ended; None: it had none."""
    if uid is not None:
        _lent.pop(uid, None)


def _next_uid() -> int:
    return FIRST_UID + os.getpid() * MOST_WORKERS + next(_boxes) % MOST_WORKERS


def find_bwrap() -> str:
    """The path of bubblewrap. Raises `SandboxError` where it or the kernel is missing or too old."""
    if sys.platform != "linux":
        raise SandboxError("the back end 'bwrap' needs Linux; use 'docker' here")
    program = shutil.which("bwrap")
    if program is None:
        raise SandboxError("bwrap is not installed (Debian, Ubuntu: apt install bubblewrap)")
    found = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    if numbers(found) < LEAST_VERSION:
        raise SandboxError(
            f"{found.strip()} is too old: {'.'.join(map(str, LEAST_VERSION))} or newer is needed"
        )
    if os.getuid() != 0 and numbers(os.uname().release) < LEAST_KERNEL:
        raise SandboxError(
            f"Linux {os.uname().release} is too old to count the processes of a box: 5.14 is needed"
        )
    return program


def numbers(version: str) -> tuple[int, ...]:
    """The first three numbers in a text."""
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def interpreter() -> Iterator[str]:
    """Options that mount the interpreter and the libraries that it links, without installed packages."""
    program, library = Path(sys.executable).resolve(), Path(sysconfig.get_path("stdlib")).parent
    system = [Path(place) for place in ("/usr/lib", "/usr/lib64", "/lib", "/lib64")]
    others = (library, program, Path("/etc/ld.so.cache"), Path("/usr/share/zoneinfo"))
    shown = [place for place in system if place.exists()]
    shown += [place for place in others if place.exists() and not any(map(place.is_relative_to, system))]
    # Folders that bubblewrap makes by itself are closed to other users, and root becomes one inside.
    for parent in sorted(
        {Path("/dev"), *(parent for place in shown for parent in place.parents)} - {Path("/")}
    ):
        yield from ("--perms", "0755", "--dir", str(parent))
    for place in shown:
        if place.is_symlink() and place in system:
            yield from ("--symlink", os.readlink(place), str(place))
        else:
            yield from ("--ro-bind", str(place), str(place))
    for parent in {library, Path("/usr/lib")}:
        for packages in (*parent.glob("python3*/site-packages"), *parent.glob("python3*/dist-packages")):
            yield from ("--tmpfs", str(packages), "--remount-ro", str(packages))
