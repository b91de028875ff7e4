"""Runs a command on a disk of a few megabytes, or on one that cannot be written: a mount that only it sees.

    python small_disk.py fill ROOT            the small run, at every level to which the disk may be full
    python small_disk.py train ROOT PROJECT   arm `full` of a project, copied there, with more and more space
    python small_disk.py start ROOT WORDS...  commands in a project that cannot be written to, one an argument

Each prints its findings as JSON. Started through `inside`, which mounts the disk first.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import small_run

from rlanything import cli

HERE = Path(__file__).parent
PAGE = 4096
MISSING = (
    "a disk cannot be mounted here: `unshare --user --map-root-user --mount` fails (on Linux: allow user namespaces, "
    "sysctl kernel.unprivileged_userns_clone=1, or run the tests as root)"
)
UNSHARE = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec")


def inside(mount: str, words: Sequence[str]) -> Any:
    """What this program prints when it is run with these words, in a process that mounted something before."""
    if not can_mount():
        pytest.skip(MISSING)
    program = [sys.executable, str(HERE / "small_disk.py"), *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{HERE.parents[2]}:{HERE.parent}"}
    command = [*UNSHARE, f'{mount}\nexec "$@"', "sh", *program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def can_mount() -> bool:
    if shutil.which(UNSHARE[0]) is None:
        return False
    return (
        subprocess.run([*UNSHARE, "mount -t tmpfs none /mnt"], capture_output=True, check=False).returncode
        == 0
    )


def leave(root: Path, free: int) -> None:
    """Fill the disk up to `free` bytes."""
    (root / "ballast").unlink(missing_ok=True)
    space = os.statvfs(root)
    (root / "ballast").write_bytes(bytes(max(0, space.f_bavail * space.f_frsize - free)))


def fill(root: Path) -> dict[str, int]:
    """The small run at every level until it has room; returns how often the disk was too full for it."""
    for pages in range(10_000):
        here = small_run.prepare(root / "run")
        leave(root, pages * PAGE)
        failure = attempt(here)
        (root / "ballast").unlink()
        if failure is None:
            small_run.finished(here)
            return {"failures": pages}
        assert failure.errno == errno.ENOSPC, failure
        assert failure.filename is not None, "the message would not say where"
        small_run.check(here)
        small_run.run(here)
        small_run.finished(here)
        shutil.rmtree(here)
    raise AssertionError("it never had room")


def attempt(root: Path) -> OSError | None:
    try:
        small_run.run(root)
    except OSError as error:
        return error
    return None


def train(root: Path, source: str) -> dict[str, Any]:
    """Train with more space at every start; returns how each start ended and what the last one left."""
    project = Path(source)
    shutil.copytree(project, root / "project", symlinks=True, ignore=shutil.ignore_patterns("runs", ".rla"))
    starts, free = [], 0
    while not starts or starts[-1][0]:
        leave(root, free)
        starts.append(command(root / "project", "train", "--arm", "full"))
        free = max(2 * free, 16 * PAGE)
    shutil.copytree(root / "project" / "runs" / "full" / "seed-0", project.parent / "on-small-disk")
    return {"starts": starts}


def start(root: Path, *commands: str) -> list[tuple[int, str]]:
    """How each command ends."""
    return [command(root, *words.split()) for words in commands]


def command(root: Path, *words: str) -> tuple[int, str]:
    """Exit code of a command of the program, and the last line that it says on stderr."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(sys.stderr):
        code = cli.main(["--root", str(root), *words])
    return code, said.getvalue().splitlines()[-1]


if __name__ == "__main__":
    name, where, *rest = sys.argv[1:]
    print(json.dumps({"fill": fill, "train": train, "start": start}[name](Path(where), *rest)))
