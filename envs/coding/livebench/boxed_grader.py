"""LiveBench's grader in a bubblewrap box: no network, few writable places, its own processes, limits on resources.

The grader runs a program in a fork of itself, so a hostile program can write its own score. The box protects the
machine, and every answer has its own box. `graders.SandboxGrader` is the grader that programs cannot cheat.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from envs.coding.livebench import box_program
from envs.coding.livebench.bounded_process import run_bounded
from envs.coding.livebench.install import Installation
from envs.coding.sandbox import SandboxError
from envs.coding.sandbox.backends.bwrap import find_bwrap, give_back, interpreter, lend_uid
from rlanything.core.types import Json

PROCESSES = 64
"""Processes and threads at a time."""
MEMORY_MB = 8192
"""Address space of a process."""
DISK_MB = 256
"""Of /tmp."""
SHARED_MB = 16
"""Of /dev/shm, where the grader's own semaphores are."""
STARTING_S = 120.0
"""Seconds for the interpreter to start and import the grader on a busy machine."""
SECONDS_A_TEST = 7.0
"""LiveBench's limit for a test, and the second that it adds."""
CLOSING_S = 5.0
LINE_BYTES = 8192
"""Output kept for each answer; the longest line of `box_program` is shorter."""
WORDS = 500
"""Characters of an error that are shown."""


@dataclass(frozen=True, slots=True)
class Grade:
    """The score of an answer, or None and why there is none."""

    score: int | None
    error: str = ""
    lacks: str = ""
    """Packages of LiveBench's environment that the program tried to import and did not find."""


def grade_in_box(
    installed: Installation, pairs: Sequence[tuple[dict[str, Json], str]], tests: int
) -> list[Grade]:
    """Grades of (question, answer) pairs in one box. `tests`: number of tests of all questions, for the time limit.

    A question's private tests must be plain JSON (`formats.livebench.write`): the grader would unpickle a blob.
    Raises `SandboxError` where no box can be made.
    """
    lines = "".join(json.dumps({"question": q, "answer": a}) + "\n" for q, a in pairs).encode()
    limit = STARTING_S + tests * SECONDS_A_TEST + len(pairs) * CLOSING_S
    uid = lend_uid() if os.getuid() == 0 else None
    try:
        ended = run_bounded(_command(installed, uid), lines, limit, LINE_BYTES * len(pairs))
    except OSError as error:
        raise SandboxError(f"bwrap cannot be started: {error}") from error
    finally:
        give_back(uid)
    if ended.timed_out:
        return [Grade(None, f"the grader was not done after {limit:.0f} s")] * len(pairs)
    found = [_grade(line) for line in ended.output.splitlines()]
    lost = Grade(None, f"the grader ended with code {ended.code}: {_shown(ended.errors.strip()[-WORDS:])}")
    return (found + [lost] * len(pairs))[: len(pairs)]


def _grade(line: str) -> Grade:
    """The grade in a line of output, which a program may have written."""
    try:
        data = json.loads(line)
        score = data.get("score")
        return Grade(int(score)) if score in (0, 1) else Grade(None, _shown(str(data.get("error", line))))
    except (ValueError, AttributeError, RecursionError):
        return Grade(None, f"not a result: {_shown(line)}")


def _shown(text: str) -> str:
    """Untrusted text, cut short, without control characters."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text[:WORDS])


def _command(installed: Installation, uid: int | None) -> list[str]:
    """The command that starts the grader: root becomes the user `uid`, others (None) get a user namespace."""
    user = (
        ["--unshare-user", "--disable-userns", "--uid", "60000", "--gid", "60000"]
        if uid is None
        else ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    )
    shown = [Path(installed.python).parent.parent, Path(installed.repository)]
    return [
        *(find_bwrap(), *user, "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
        *("--die-with-parent", "--new-session", "--clearenv", "--setenv", "PATH", "/usr/bin:/bin"),
        *("--setenv", "HOME", "/tmp", "--setenv", "LANG", "C.UTF-8", "--setenv", "OMP_NUM_THREADS", "1"),
        *("--perms", "0755", "--dir", "/usr"),
        *interpreter(),
        *("--proc", "/proc", "--dev", "/dev"),
        *("--size", str(SHARED_MB << 20), "--perms", "1777", "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),
        *("--size", str(DISK_MB << 20), "--perms", "1777", "--tmpfs", "/tmp", "--chdir", "/tmp"),
        *(word for place in shown for word in _show(place)),
        *(
            word
            for name in _names(Path(installed.python), shown[0])
            for word in ("--ro-bind", str(name.resolve()), str(name))
        ),
        *("--remount-ro", "/"),
        *(installed.python, "-B", "-c", Path(box_program.__file__).read_text(encoding="utf-8")),
        *(installed.repository, str(uid or 0), str(PROCESSES), str(MEMORY_MB)),
    ]


def _names(python: Path, environment: Path) -> Iterator[Path]:
    """The links outside `environment` that its interpreter leads to, as `bin/python3` of the Python that made it."""
    while python.is_symlink():
        python = python.parent / os.readlink(python)
        if python.is_symlink() and not python.is_relative_to(environment):
            yield python


def _show(place: Path) -> Iterator[str]:
    """Options that mount a folder. Its parents are made here, because bwrap would close them to other users."""
    for parent in reversed(place.parents[:-1]):
        if parent != Path("/tmp"):
            yield from ("--perms", "0755", "--dir", str(parent))
    yield from ("--ro-bind", str(place), str(place))
