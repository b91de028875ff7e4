"""What the processes of these tests do. Each imports this file anew, so it imports little."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from rlanything.core.errors import ConfigError

ROOT = Path(__file__).parents[2]


class Unportable(Exception):
    """Cannot be made again from its message, which pickle tries."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


def stubborn(mark: Path) -> None:
    """As a training does: it handles SIGTERM and goes on."""
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    whole = mark.with_name(f".{mark.name}-{os.getpid()}")  # whoever sees the mark can read it
    whole.write_text(str(os.getpid()))
    whole.replace(mark)
    while True:
        time.sleep(600)


def fails(how: str, mark: Path) -> None:
    """Fails when the other one is at work."""
    if how == "goes on":
        stubborn(mark)
    while not mark.exists():
        time.sleep(0.01)
    if how == "config":
        raise ConfigError("the votes hold no verdict")
    if how == "disk":
        raise OSError(28, "No space left on device", "runs/full")
    if how == "unportable":
        raise Unportable("it is ", "broken")
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(3)


def unready(mark: Path) -> None:
    """Never called: there is nothing of that name where it is looked for."""


def double(value: int) -> int:
    return 2 * value


def endless() -> bytes:
    """An answer that fits into no pipe."""
    return bytes(1 << 22)


def surroundings(name: str) -> tuple[str | None, str]:
    """A variable and the working folder, which it prints as well."""
    print("heard", os.environ.get(name), flush=True)
    return os.environ.get(name), os.getcwd()
