"""The protocol of the loop (`rlanything.core.protocols.Environment`) on an episode."""

from __future__ import annotations

from collections.abc import Callable

from envs.web.play.episode import Episode
from rlanything.core.types import Observation, StepResult, Task


class WebEnvironment:
    """One episode at a time. Pages are shared: one that is not told of the end of an episode is played in all the same.

    listed: whether observations list the admissible commands.
    """

    def __init__(self, start: Callable[[Task], Episode], listed: bool = True) -> None:
        self._start, self._listed = start, listed
        self.episode: Episode | None = None
        """What is played; None before `reset`, after `close` and after a failure."""
        self.task_id, self.order = "", 0

    def reset(self, task: Task, seed: int) -> Observation:
        """Start the episode. The task's own seed makes the page; `seed` changes nothing, as a page draws nothing else.

        Raises `BrowserError` or `BrowserTimeout` when the page cannot be played.
        """
        self.episode, self.task_id = self._start(task), task.task_id
        return self._observation(self.episode, self.episode.first)

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
        return StepResult(self._observation(episode, text), episode.done, episode.view.success)

    def close(self) -> None:
        """Forget the episode, and leave its page to others."""
        if self.episode is not None:
            self.episode.leave()
        self.episode = None

    def _observation(self, episode: Episode, text: str) -> Observation:
        commands = tuple(episode.commands) if self._listed else ()
        picture = episode.view.picture
        return Observation(text, commands, () if picture is None else (picture,))
