"""One running world: a command that speaks the protocol. It plays one episode at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any, NamedTuple, TypeVar

from envs.desktop.bridge import answers
from envs.desktop.bridge.answers import Hello, Sight, TaskFailed, WorldError
from envs.desktop.bridge.lines import Lines
from rlanything.core.errors import MachineError

Json = Mapping[str, Any]
T = TypeVar("T")
BRIDGE = "envs.desktop.bridge.osworld_bridge"
"""The program that OSWorld's Python runs; what a run depends on is found by this name too (`runs/imports.py`)."""
CLOSING = 20.0
"""Seconds that a world gets to end; a virtual machine is stopped in this time."""


class Settings(NamedTuple):
    """command: what starts a world; start, timeout: seconds until it says hello, and for any other answer.

    pictures, trees: what is asked for at every step.
    """

    command: tuple[str, ...]
    start: float = 900.0
    timeout: float = 300.0
    pictures: bool = True
    trees: bool = False


def expanded(command: Sequence[str]) -> list[str]:
    """The words of a command with its environment variables. Raises `MachineError` for one that is not set."""
    known = {"OSWORLD_BRIDGE": str(Path(__file__).with_name(f"{BRIDGE.rpartition('.')[2]}.py")), **os.environ}
    try:
        return [Template(word).substitute(known) for word in command]
    except KeyError as missing:
        raise MachineError(f"command: the environment variable {missing.args[0]} is not set") from None
    except ValueError as error:
        raise MachineError(f"command: {error}; a dollar sign is written as $$") from None


class World:
    """A world that has said hello. After an error that is not the task's own it is broken: close it.

    Raises `MachineError` where the command cannot be started, `WorldError` and `WorldTimeout`.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lines = Lines(expanded(settings.command))
        self._asked = 0
        self.broken = False
        self.used = False
        """Whether a task was set up here before: what its episode left behind may have spoilt the world."""
        self.hello = Hello("", (1, 1))
        try:
            asked = {"version": answers.VERSION, "screenshot": settings.pictures, "tree": settings.trees}
            self.hello = answers.hello(self._ask("hello", asked, settings.start))
        except BaseException:
            self.close()
            raise

    def reset(self, task: Json, seed: int) -> Sight:
        """Set a task up. Raises `TaskFailed` where the world cannot."""
        self.used = True
        return self._sight("reset", {"task": task, "seed": seed})

    def step(self, actions: Sequence[Json]) -> Sight:
        """Perform actions of `computer_13`, one after the other."""
        return self._sight("step", {"actions": list(actions)})

    def evaluate(self) -> float:
        """The evaluator's verdict, 0..1. Raises `TaskFailed` where the evaluator raises: that is no verdict."""
        content = self._ask("evaluate", {}, self._settings.timeout)
        return self.checked(lambda: answers.score(content))

    def close(self) -> None:
        """End the world."""
        self.broken = True
        self._lines.close(CLOSING)

    def checked(self, read: Callable[[], T]) -> T:
        """What `read` makes of an answer of this world, which is broken where that raises `WorldError`."""
        try:
            return read()
        except WorldError:
            self.broken = True
            raise

    def _sight(self, what: str, asked: Json) -> Sight:
        content = self._ask(what, asked, self._settings.timeout)
        found = self.checked(lambda: answers.sight(content, self.hello.screen))
        if self._settings.pictures and found.screenshot is None:
            self.broken = True
            raise WorldError("the world has sent no screenshot")
        if self._settings.trees and content.get("tree") is None:
            self.broken = True
            raise WorldError("the world has sent no accessibility tree")
        return found

    def _ask(self, what: str, asked: Json, limit: float) -> Json:
        if self.broken:
            raise WorldError("the world failed earlier")
        self._asked += 1
        line = json.dumps({"id": self._asked, "do": what, **asked}, allow_nan=False).encode()
        try:
            return answers.answer(self._lines.ask(line, limit), self._asked)
        except TaskFailed:
            raise
        except BaseException:  # also where a signal interrupts: a late answer would be taken for another one
            self.broken = True
            raise
