"""A command that DVC runs as a stage ends with the DVC that started it.

DVC waits for its stage, and a kill of DVC alone leaves the stage running. The next `dvc repro` would remove the outputs
under it, and start it a second time beside it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import psutil

_EVERY_S = 1.0


def end_with_it() -> None:
    """Kill this process when the DVC process that it descends from has ended. Without one, nothing is watched.

    A kill does no damage: what is published stays, and the same command goes on.
    """
    process = _above()
    if process is not None:
        threading.Thread(target=_watch, args=(process,), daemon=True, name="dvc").start()


def _above() -> psutil.Process | None:
    """The nearest process above this one that is DVC. Between them there may be a shell, make or torchrun."""
    with suppress(psutil.Error):
        for process in psutil.Process().parents():
            with suppress(psutil.Error):
                if _is_dvc(process.cmdline()):
                    return process
    return None


def _is_dvc(words: list[str]) -> bool:
    """Whether a command line is `dvc ...`, `python .../dvc ...` or `python -m dvc ...`."""
    program, *rest = words or [""]
    script = next((word for word in rest if not word.startswith("-")), "")
    return "dvc" in (Path(program).name, Path(script).name) or ("-m", "dvc") in pairwise(words)


def _watch(process: psutil.Process) -> None:
    while _lives(process):
        time.sleep(_EVERY_S)
    with suppress(OSError):  # the terminal may be gone as well
        print(
            "rlanything: the DVC that started this stage has ended; the stage ends",
            file=sys.stderr,
            flush=True,
        )
    os.kill(os.getpid(), signal.SIGKILL)


def _lives(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
