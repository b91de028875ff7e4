"""What starts workers and carries orders to them: processes of this machine, or actors of Ray. No policy is in here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from rlanything.core.errors import MachineError
from rlanything.runs.executors.worker import Answer, Greeting, Order

LINES = 20
"""How many lines of the log of a lost worker are shown."""
MOST = 8192
"""How many bytes of it are read."""


class LostError(MachineError):
    """A worker ended without an answer. The message says why, as far as that is known."""


class Hand(Protocol):
    """One worker, as the process that asks sees it. Its first answer is its `Greeting`, without an order."""

    greeting: Greeting | None
    """None until the worker has greeted."""

    def ask(self, order: Order) -> None:
        """Send an order. The one before must have been answered. Raises `LostError`."""
        ...

    def receive(self) -> Answer:
        """The answer that has arrived. Raises `LostError`."""
        ...

    def kill(self) -> None:
        """End the worker now, whatever it does."""
        ...

    def last_words(self) -> str:
        """The end of the worker's log; '' where it cannot be read. Takes some seconds at most."""
        ...


class Pool(Protocol):
    """Starts workers."""

    def start(self) -> Any:
        """A `Hand` of a new worker. Returns at once, before the worker has started."""
        ...

    def wait(self, hands: Sequence[Any], timeout_s: float) -> list[Any]:
        """Those of the hands that have something to receive; waits for the first one."""
        ...

    def room(self) -> str:
        """What there is to start workers with, for the message that none has started."""
        ...


def tail(path: Path) -> str:
    """The last lines of a file; '' where it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - MOST))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-LINES:])
