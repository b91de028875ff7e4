"""Starts a program, and ends it with all of its children when the process that asked for it has ended, however it did.

vLLM's processes outlive a parent that was killed. So this small process stands between: it is in their process group,
waits for the end of its standard input, which only the asking process holds open, and then kills the group. It leads
the group, or `below` does, whose child it is then.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress

from rlanything.core.printable import ended

LOOK_S = 0.5
"""Seconds between two looks at the program."""
GRACE_S = 10.0
"""Seconds that the program has to end by itself after SIGTERM."""


def main(command: list[str]) -> None:
    """Run `command` until it ends, or until nobody wants it any more."""
    parent = os.getppid()
    program = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    while program.poll() is None:
        if alone(parent):
            program.terminate()
            with suppress(subprocess.TimeoutExpired):
                program.wait(GRACE_S)
            break
    else:
        print(f"the server {ended(program.returncode)}", flush=True)
    os.killpg(0, signal.SIGKILL)


def alone(parent: int) -> bool:
    """Whether the process that asked has ended, or has closed the pipe. Waits a moment to find out."""
    closed, _, _ = select.select([0], [], [], LOOK_S)
    return bool(closed) or os.getppid() != parent


if __name__ == "__main__":
    main(sys.argv[1:])
