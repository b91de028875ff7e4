"""The protocol of the loop (`rlanything.core.protocols.Environment`) on a world behind the bridge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from envs.computer import reply
from envs.computer.actions import Action, Refusal
from envs.computer.calls import calls
from envs.computer.said import said as words
from envs.desktop.bridge.answers import Sight, WorldError, WorldTimeout
from envs.desktop.bridge.pool import Pool
from envs.desktop.bridge.world import World
from envs.desktop.play import screen, text
from envs.desktop.play.screen import Item, View
from rlanything.core.images import Image
from rlanything.core.types import Observation, StepResult, Task

TaskFile = Callable[[Task], Mapping[str, Any]]
"""The task file that a world gets for a task."""


class DesktopEnvironment:
    """One episode at a time. A world is taken at `reset` and given back at `close`; a broken one is never used again.

    Raises `WorldError`, `WorldTimeout` and `TaskFailed`, which are errors of the episode and no failure of the policy.
    """

    def __init__(self, pool: Pool, task_file: TaskFile) -> None:
        self._pool, self._task_file = pool, task_file
        self._world: World | None = None
        self._view = View()
        self._pictures: tuple[Image, ...] = ()
        self.task_id, self.order = "", 0
        self.over = True
        """Whether nothing more can be done: before `reset`, after the end, and after a failure."""
        self.begun: tuple[tuple[str, int], Future[Observation]] | None = None
        """The start of an episode, of this task id and seed, that was made ahead of time (`together`)."""
        self.made: tuple[str, Future[StepResult]] | None = None
        """The step with this action that was made ahead of time."""

    def reset(self, task: Task, seed: int) -> Observation:
        """Set the task up, where that was not done ahead of time."""
        begun, self.begun = self.begun, None
        if begun is not None and begun[0] == (task.task_id, seed):
            return begun[1].result()
        return self.begin(task, seed)

    def begin(self, task: Task, seed: int) -> Observation:
        """Set the task up in a world; in a fresh one where that fails in a world that another episode had."""
        self.close()
        self._world = world = self._pool.take()
        self.task_id, used = task.task_id, world.used
        try:
            return self._set_up(task, seed)
        except (WorldError, WorldTimeout):
            if not (used and world.broken):
                raise
        self._world = self._pool.take(fresh=True)
        return self._set_up(task, seed)

    def _set_up(self, task: Task, seed: int) -> Observation:
        """Set the task up in the world that was taken; give it back where that fails."""
        assert self._world is not None
        try:
            sight = self._world.reset(self._task_file(task), seed)
            shown = self._observation(task.instruction, sight)
        except BaseException:
            self.close()
            raise
        self.over = sight.done
        return shown

    def step(self, action: str) -> StepResult:
        """Do what a reply says. What cannot be done is answered in text. Success is the evaluator's, at the end."""
        made, self.made = self.made, None
        if made is None:
            return self.act(action)
        if made[0] != action:  # the world has gone another way
            self.over = True
            raise RuntimeError("another action than this one was made ahead of time")
        return made[1].result()

    def act(self, said: str) -> StepResult:
        """Do what a reply says, in the world."""
        world = self._world
        if world is None or self.over:
            raise RuntimeError("`step` before `reset`, or after the end")
        action, item = self._fitting(reply.read(said, world.hello.screen))
        if isinstance(action, Refusal):
            # Nothing is sent, and nothing has changed; a world that has more to show shows it at the next step.
            answer = "\n".join([f"You did nothing: {action.reason}", *text.lines(self._view)])
            return StepResult(Observation(answer, images=self._pictures), False, False)
        try:
            sight = world.step(calls(action))
            if not sight.done and action.kind not in ("done", "fail"):
                return StepResult(self._observation(words(action, item), sight), False, False)
            self.over = True
            pictures = () if sight.screenshot is None else (sight.screenshot,)
            return StepResult(
                Observation("You ended the task.", images=pictures), True, world.evaluate() >= 1.0
            )
        except BaseException:
            self.over = True
            raise

    def verdict(self) -> bool:
        """The evaluator's verdict on the world as it is now. The episode goes on only to be closed."""
        if self._world is None or self.over:
            raise RuntimeError("`verdict` before `reset`, or after the end")
        self.over = True
        return self._world.evaluate() >= 1.0

    def close(self) -> None:
        """Give the world back."""
        world, self._world, self.over = self._world, None, True
        if world is not None:
            self._pool.give_back(world)

    def _fitting(self, action: Action | Refusal) -> tuple[Action | Refusal, Item | None]:
        """The action with its element as a place, or why it cannot be done on this screen."""
        assert self._world is not None
        width, height = self._world.hello.screen
        if isinstance(action, Refusal):
            return action, None
        if action.number:
            item = self._view.element(action.number)
            if item is None:
                return Refusal("there is no such element."), None
            return replace(action, number=0, x=item.x, y=item.y), item
        if (action.x or 0) >= width or (action.y or 0) >= height:
            return Refusal(f"that is outside the screen, which has {width} x {height} pixels."), None
        return action, None

    def _observation(self, before: str, sight: Sight) -> Observation:
        world = self._world
        assert world is not None
        self._view = world.checked(lambda: screen.read(sight.tree, world.hello.screen))
        pictures = () if sight.screenshot is None else (sight.screenshot,)
        self._pictures = pictures
        return Observation("\n".join([before, *text.lines(self._view)]), images=pictures)
