"""The real engine in a child process that can be killed. Implements `Environment`.

TextWorld's planner library is not thread-safe, can hang for minutes and can crash the interpreter. In a child process
that costs one episode.
"""

from __future__ import annotations

import importlib.util
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from envs.alfworld.engines import textworld_worker
from envs.alfworld.engines.children import Child, Idle
from envs.alfworld.games.game import Game, GameError
from envs.alfworld.games.pddl import problem_pddl
from envs.alfworld.play.validate import why_unplayable
from rlanything.core.errors import EnvironmentFailure
from rlanything.core.types import Observation, StepResult, Task

WORKER = (sys.executable, "-m", textworld_worker.__name__)
PLACEHOLDER = "UNKNOWN GOAL"
MOST_OPEN = 64
"""Episodes that are open at a time. Each has a child process of some 70 MB and three open files. Many systems allow a
process 1024 of these."""
_ROOT = Path(__file__).resolve().parents[3]


class EngineCrashedError(EnvironmentFailure):
    """The child process died or could not answer; the message ends with the last line of its standard error."""


def require_textworld() -> None:
    """Raise `ValueError` when the packages of the real engine are not installed. Imports none of them."""
    missing = [
        name for name in ("alfworld", "textworld", "fast_downward") if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise ValueError(
            f"engine: 'textworld' needs {', '.join(missing)}: install the extra with pip install 'rlanything[alfworld]'"
        )


class TextworldEnvironment:
    """Plays tasks with ALFWorld's own code.

    timeout: seconds for one answer, including the start of a child and the load of a game. idle: where children wait
    between episodes; None: a child ends with `close`.
    """

    def __init__(self, timeout: float, command: Sequence[str] = WORKER, idle: Idle | None = None) -> None:
        self._timeout = timeout
        self._command = tuple(command)
        self._idle = idle
        self._child: Child | None = None
        self._waiting = False
        self._done = True

    def reset(self, task: Task, seed: int) -> Observation:
        """Start an episode. Raises `GameError`, `TimeoutError` or `EngineCrashedError`."""
        game = Game.from_payload(task.payload)
        if reason := why_unplayable(game):
            raise GameError(reason)
        answer = self._ask({"problem": problem_pddl(game, "game")})
        assert self._child is not None
        self._child.games += 1
        self._done = False
        # The instruction never reaches the grammar, whose text the engine evaluates as Python.
        return Observation(answer["text"].replace(PLACEHOLDER, task.instruction, 1), tuple(answer["actions"]))

    def step(self, action: str) -> StepResult:
        """Perform a command. Raises `RuntimeError` without an episode, `TimeoutError` or `EngineCrashedError`."""
        if self._done:
            raise RuntimeError("no episode is under way: call reset first")
        answer = self._ask({"action": action})
        self._done = answer["done"]
        return StepResult(Observation(answer["text"], tuple(answer["actions"])), self._done, self._done)

    def close(self) -> None:
        """The episode is over. Its child waits for the next one, or ends where it owes an answer."""
        self._done = True
        child, self._child = self._child, None
        if child is None:
            return
        if self._idle is None or self._waiting:
            child.end()
        else:
            self._idle.give(child)

    def _ask(self, request: dict[str, str]) -> dict[str, Any]:
        """Send a request and wait for its answer. Any failure ends the child."""
        child, deadline = self._started(), time.monotonic() + self._timeout
        self._waiting = True  # until the answer is read: a child that owes one must not have another episode
        try:
            self._send(child.process, json.dumps(request).encode() + b"\n", deadline)
            answer = json.loads(self._line(child.process, deadline))
        except (BrokenPipeError, EOFError, json.JSONDecodeError) as error:
            raise EngineCrashedError(self._end_child(child, f"{type(error).__name__} {error}")) from error
        except TimeoutError:
            self.close()
            raise
        if "error" in answer:
            raise EngineCrashedError(self._end_child(child, answer["error"]))
        self._waiting = False
        return dict(answer)

    def _started(self) -> Child:
        if self._child is None:
            self._child = self._idle.take() if self._idle is not None else None
        if self._child is None:
            paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
            self._child = Child(self._command, {**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
        return self._child

    def _send(self, child: subprocess.Popen[bytes], data: bytes, deadline: float) -> None:
        """Write all of it: a large room is more than a pipe holds. Raises `TimeoutError` or `BrokenPipeError`."""
        assert child.stdin is not None
        os.set_blocking(child.stdin.fileno(), False)
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdin, selectors.EVENT_WRITE)
            while data:
                self._wait(selector, deadline)
                data = data[os.write(child.stdin.fileno(), data) :]

    def _wait(self, selector: selectors.BaseSelector, deadline: float) -> None:
        if not selector.select(max(0.0, deadline - time.monotonic())):
            raise TimeoutError(f"the engine did not answer within {self._timeout:g} s")

    def _line(self, child: subprocess.Popen[bytes], deadline: float) -> bytes:
        """One line of the child's answer. Raises `TimeoutError`, or `EOFError` when the child is gone."""
        assert child.stdout is not None
        received = b""
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ)
            while not received.endswith(b"\n"):
                self._wait(selector, deadline)
                chunk = child.stdout.read(1 << 16)
                if not chunk:
                    raise EOFError("the engine ended")
                received += chunk
        return received

    def _end_child(self, child: Child, what: str) -> str:
        """End the child; returns `what` with the last line of its standard error."""
        written = child.last_error()
        self.close()
        return f"{what}: {written}" if written else what
