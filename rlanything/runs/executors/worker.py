"""What a worker is: the environments of one family in a process of their own, and how it is asked.

An order holds everything that its answer depends on (`loop.episodes`), so a worker has nothing that must not be lost.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rlanything import targets
from rlanything.core.ids import content_id
from rlanything.core.protocols import TaskFamily
from rlanything.loop.episodes import Host, LocalHost
from rlanything.runs.imports import code_hashes
from rlanything.runs.workers import portable

HERE = "rlanything.runs.executors.worker"


@dataclass(frozen=True, slots=True)
class Order:
    """What a worker is asked. ask: a method of `Host`, which gives one result for each item. part: the items.

    epoch: a worker closes the episodes of other epochs.
    """

    epoch: int
    ask: str
    part: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a worker says first: where it runs, and from which code. log: the file that gets its stderr, or ''."""

    pid: int
    node: str
    log: str
    code: str


Answer = tuple[BaseException | None, Any]
"""What the order raised, and its results. One of them is None."""


class Worker:
    """The worker's side. It answers orders one at a time, in the main thread."""

    def __init__(self, family: Callable[[], TaskFamily], code: str, node: str = "") -> None:
        self.greeting = Greeting(os.getpid(), node, _log(), code)
        self._host: Host = LocalHost(family())
        self._epoch = 0

    def answer(self, order: Order) -> Answer:
        """The results of an order. An exception is an answer, with its traceback as a note."""
        try:
            if order.epoch != self._epoch:
                self._host.clear()
                self._epoch = order.epoch
            return None, self._asked(order.ask, order.part)
        except Exception as error:
            return portable(error, f"in worker {self.greeting.pid} {self.greeting.node}".rstrip()), None

    def _asked(self, ask: str, part: Sequence[Any]) -> list[Any]:
        asks: dict[str, Callable[[Any], list[Any]]] = {
            "play": self._host.play,
            "close": self._host.close,
            "examine": self._host.examine,
        }
        return asks[ask](part)


class Maker(Protocol):
    """Makes a worker in its own process. It must be possible to pickle it."""

    def __call__(self, node: str = "") -> Worker:
        """The worker. node: the name of the node that it runs on."""
        ...


@dataclass(frozen=True, slots=True)
class ConfiguredWorker:
    """Makes a worker for the family that the section `env` names. code: `code_of` of whoever asks."""

    section: Mapping[str, Any]

    def __call__(self, node: str = "") -> Worker:
        """See `Maker`. Raises `ConfigError` where the family cannot be made here."""
        return Worker(
            lambda: targets.instantiate(self.section, "env", TaskFamily), code_of(self.section), node
        )


def code_of(section: Mapping[str, Any]) -> str:
    """A hash of Python's version and of the code that a worker's answers depend on: `loop.episodes` and the family."""
    code = code_hashes([HERE, *targets_of(section)])
    return content_id({"python": platform.python_version_tuple()[:2], "code": code})


def targets_of(section: Mapping[str, Any]) -> list[str]:
    """The name of the section's class."""
    return [str(section[targets.TARGET])]


def _log() -> str:
    """The file that stderr goes to; '' where it is no file."""
    try:
        path = os.readlink("/proc/self/fd/2")
    except OSError:
        return ""
    return path if os.path.isfile(path) else ""
