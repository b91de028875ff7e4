"""What the families of both worlds share: what an agent is shown, worlds that work together, and rewordings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from envs.computer.observes import observes
from envs.computer.observes import screen as sides
from envs.desktop import rewording
from envs.desktop.bridge.pool import Pool
from envs.desktop.bridge.world import Settings, World
from envs.desktop.play.environment import DesktopEnvironment
from envs.desktop.play.together import Together
from envs.settings import seconds, whole
from envs.splits import SPLITS
from rlanything.core.errors import MachineError
from rlanything.core.protocols import Environment
from rlanything.core.types import InvalidProposal, Task

MOST_WORLDS = 4096
LARGEST_SIDE = 8192
"""Pixels."""


class WorldFamily(ABC):
    """Tasks in worlds behind the bridge; a task is one of its templates, each with an evaluator of its own.

    observe: screenshot, tree or both. screen: width and height in pixels, which the world must have. worlds: how many
    may run in this process. start, timeout: seconds until a world says hello, and for each of its other answers.

    Raises `ValueError`, naming argument, value and what is allowed.
    """

    name: str
    reuse = True
    """Whether a world has one episode after the other: its `reset` undoes all that the last one did."""

    def __init__(
        self, observe: str, screen: Sequence[int], worlds: int, start: float, timeout: float
    ) -> None:
        self._trees, self.pictures = observes(observe)
        self.only_pictures = observes(observe).only_pictures
        self._screen = sides(screen, (1, 1), LARGEST_SIDE)
        self._times = seconds("start", start), seconds("timeout", timeout)
        self.most_open = whole("worlds", worlds, 1, MOST_WORLDS)
        self._made: Pool | None = None
        self._together = Together(lambda: DesktopEnvironment(self._pool, self._task_file), self.most_open)

    @abstractmethod
    def _command(self) -> Sequence[str]:
        """What starts a world. Raises `MachineError` where it cannot."""

    @abstractmethod
    def _task_file(self, task: Task) -> Mapping[str, Any]:
        """What a world gets for a task."""

    @abstractmethod
    def _templates(self, task: Task) -> Mapping[str, str]:
        """Evaluator name -> canonical instruction, of everything that the task may become."""

    @abstractmethod
    def _app(self, task: Task) -> str:
        """The application of a task."""

    @property
    def _pool(self) -> Pool:
        """The worlds of this process. Raises `MachineError` where something is not installed."""
        if self._made is None:
            settings = Settings(
                tuple(self._command()), *self._times, pictures=self.pictures, trees=self._trees
            )
            self._made = Pool(settings, self.most_open, self._check, reuse=self.reuse)
        return self._made

    def splits(self) -> tuple[str, ...]:
        """The distributions that `make` draws tasks from."""
        return SPLITS

    def environment(self) -> Environment:
        """An environment. Raises `MachineError` where worlds cannot be started, or are others than is meant."""
        self._pool.ready()
        return self._together.environment()

    def prepare(self, work: Sequence[tuple[Task, int]]) -> None:
        """Set tasks up at the same time, before their episodes are reset one by one."""
        self._pool.ready()
        self._together.prepare(work)

    def prefetch(self, work: Sequence[tuple[Task, str]]) -> None:
        """Make the steps of a turn at the same time, before the episodes take them one by one."""
        self._together.advance(work)

    def describe(self, task: Task) -> str:
        """The templates that an adapter may choose from, and last the task in the form of a reply."""
        lines = [f"application: {self._app(task)}", "templates, by the name of their evaluator:"]
        lines += [rewording.reply(key, said) for key, said in self._templates(task).items()]
        return "\n".join([*lines, "the task now:", rewording.reply(task.payload["key"], task.instruction)])

    def parse(self, parent: Task, reply: str) -> Task:
        """The task that an adapter's reply asks for. Raises `InvalidProposal`."""
        key, instruction = rewording.read(reply, self._templates(parent))
        if (key, instruction) == (parent.payload["key"], parent.instruction):
            raise InvalidProposal("the reply changes nothing")
        return Task(self.name, instruction, {**parent.payload, "key": key}, parent.metadata)

    def _check(self, world: World) -> None:
        """Raise `MachineError` for a world that is another one than the configuration says."""
        if world.hello.screen != self._screen:
            raise MachineError(
                f"the world's screen has {world.hello.screen} pixels, env.screen says {self._screen}"
            )
