"""Episodes that advance together: the next views of all of them, in few calls to the browser.

The loop gives a family the actions of a turn before the episodes take them one by one (`Prefetches`). It names the task
of each, and the episodes of a task come in the order in which they were started.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakSet

from envs.computer.turns import paired
from envs.web.browser.pool import Pool
from envs.web.play.environment import WebEnvironment
from envs.web.play.episode import Episode
from rlanything.core.types import Task


class Together:
    """The running episodes of one process, by their tasks."""

    def __init__(self) -> None:
        self._environments: WeakSet[WebEnvironment] = WeakSet()
        self._started = 0

    def join(self, environment: WebEnvironment) -> WebEnvironment:
        """Count an environment among those that advance together."""
        self._started += 1
        environment.order = self._started
        self._environments.add(environment)
        return environment

    def advance(self, pool: Pool, work: Sequence[tuple[Task, str]]) -> None:
        """Play what the actions lead to ahead of time."""
        wanted = defaultdict[tuple[str, bool], list[tuple[str, list[dict[str, Any]]]]](list)
        for episode, text in paired(self._running(), work):
            made = episode.next_actions(text)
            if made is not None:
                wanted[episode.setting.kind.name, episode.pictures].append((episode.setting.seed, made))
        for pictures in (False, True):
            pool.play_ahead(
                {kind: made for (kind, with_them), made in wanted.items() if with_them == pictures}, pictures
            )

    def _running(self) -> Iterator[tuple[str, Episode]]:
        for environment in sorted(self._environments, key=lambda one: one.order):
            if environment.episode is not None and not environment.episode.done:
                yield environment.task_id, environment.episode
