"""The protocol of the loop (`rlanything.core.protocols.Environment`) on an episode."""

from __future__ import annotations

from collections.abc import Callable

from envs.web.play.episode import Episode
from rlanything.core.types import Observation, StepResult, Task


class WebEnvironment:
    """One episode at a time. Its page is shared: nothing is open between two calls that `close` would have to close."""

    def __init__(self, start: Callable[[Task], Episode]) -> None:
        self._start = start
        self.episode: Episode | None = None
        """What is played; None before `reset`, after `close` and after a failure."""
        self.task_id, self.order = "", 0

    def reset(self, task: Task, seed: int) -> Observation:
        """Start the episode. The task's own seed makes the page; `seed` changes nothing, as a page draws nothing else.

        Raises `BrowserError` or `BrowserTimeout` when the page cannot be played.
        """
        self.episode, self.task_id = self._start(task), task.task_id
        return Observation(self.episode.first, tuple(self.episode.commands))

    def step(self, action: str) -> StepResult:
        """Do what `action` says; success is the page's own. What cannot be done is answered in text."""
        episode = self.episode
        if episode is None:
            raise RuntimeError("`step` before `reset`")
        try:
            text = episode.step(action)
        except Exception:
            self.episode = None
            raise
        return StepResult(Observation(text, tuple(episode.commands)), episode.done, episode.view.success)

    def close(self) -> None:
        """Forget the episode."""
        self.episode = None
