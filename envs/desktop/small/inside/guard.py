"""The first process of the box. It keeps the protocol from the applications, and the box within its limits.

Programs that an agent starts have the same user as the desktop's own. So the desktop's processes are not dumpable:
their memory and open files are closed to other programs, and with them the pipe that verdicts go through. The first
process only watches. It cannot be killed from inside, and when it ends the kernel ends everything else in the box.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from pathlib import Path
from typing import IO

MOST_PROCESSES = 256
"""Processes of a box. A desktop with an application has about ten."""
MOST_MEMORY = 2 * 2**30
"""Bytes of memory of all processes of a box. A desktop with an application has about 0.1 GB."""
OWN = {
    resource.RLIMIT_AS: 2 * 2**30, resource.RLIMIT_NPROC: 1024, resource.RLIMIT_FSIZE: 2**28, resource.RLIMIT_CORE: 0,
}  # fmt: skip
"""Limits of each process, kept by the kernel: bytes of addresses, threads of the box (before Linux 5.14, of its user),
bytes of a file and of a core dump."""
INTERVAL = 0.05
"""Seconds between two looks."""
PR_SET_DUMPABLE = 4


def begin() -> tuple[IO[bytes], IO[str]]:
    """(requests, answers): the protocol's pipes, which programs that are started from now on do not inherit.

    Returns in a child of the first process. The first process ends with it, or where the box grows over its limits.
    """
    conceal()
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # what a module prints is none of the protocol
    child = os.fork()
    if child:
        requests.close()
        answers.close()
        os._exit(_watch(child))
    for kind, most in OWN.items():
        resource.setrlimit(kind, (most, most))
    return requests, answers


def conceal() -> None:
    """Close the memory and the open files of this process to others of its user. Raises `OSError`."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE)")


def _watch(child: int) -> int:
    """Collect processes that ended, until `child` does or the box is over a limit. The exit status."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while True:
        while (ended := os.waitpid(-1, os.WNOHANG)[0]) != 0:
            if ended == child:
                return 0
        if reason := _over():
            print(f"the desktop was ended: {reason}", file=sys.stderr, flush=True)
            return 1
        signal.sigtimedwait({signal.SIGCHLD}, INTERVAL)


def _over() -> str:
    """Which limit the box is over, or ''."""
    places = list(Path("/proc").glob("[0-9]*"))
    if len(places) > MOST_PROCESSES:
        return f"it had more than {MOST_PROCESSES} processes"
    if sum(map(_memory, places)) > MOST_MEMORY:
        return f"its processes had more than {MOST_MEMORY} bytes"
    return ""


def _memory(place: Path) -> int:
    """Bytes that a process has in memory and are of no file: its own, and what it shares, of each who shares it."""
    try:
        lines = (place / "status").read_text().splitlines()
    except OSError:  # it has ended
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("RssAnon:", "RssShmem:")))
