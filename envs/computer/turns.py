"""Whose action is whose: the loop names the task of every action of a turn (`Prefetches`), not its episode.

The actions of a task come in the order in which its episodes were started.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from rlanything.core.types import Task

T = TypeVar("T")


def paired(running: Iterable[tuple[str, T]], work: Sequence[tuple[Task, str]]) -> Iterator[tuple[T, str]]:
    """(episode, action) of a turn. running: (task id, episode) in the order in which the episodes were started.

    Where a task has another number of running episodes than of actions, whose they are is not known: it is left out.
    """
    actions = defaultdict[str, list[str]](list)
    for task, action in work:
        actions[task.task_id].append(action)
    episodes = defaultdict[str, list[T]](list)
    for task_id, episode in running:
        episodes[task_id].append(episode)
    for task_id, ours in episodes.items():
        texts = actions.get(task_id, [])
        if len(texts) == len(ours):
            yield from zip(ours, texts, strict=True)
