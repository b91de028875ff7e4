"""The protocol of the loop (`rlanything.core.protocols.Environment`) on an episode."""

from __future__ import annotations

from collections.abc import Callable

from envs.web.play.episode import Episode
from rlanything.core.types import Observation, StepResult, Task


class WebEnvironment:
    """One episode at a time. Its page is shared: nothing is open between two calls that `close` would have to close."""

    def __init__(self, start: Callable[[Task], Episode]) -> None:
        self._start = start
        self._episode: Episode | None = None

    def reset(self, task: Task, seed: int) -> Observation:
        """Start the episode. The task's own seed makes the page; `seed` changes nothing, as a page draws nothing else.

        Raises `BrowserError` or `BrowserTimeout` when the page cannot be played.
        """
        self._episode = self._start(task)
        return Observation(self._episode.first, tuple(self._episode.commands))

    def step(self, action: str) -> StepResult:
        """Do what `action` says; success is the page's own. What cannot be done is answered in text."""
        episode = self._episode
        if episode is None:
            raise RuntimeError("`step` before `reset`")
        text = episode.step(action)
        return StepResult(Observation(text, tuple(episode.commands)), episode.done, episode.view.success)

    def close(self) -> None:
        """Forget the episode."""
        self._episode = None
