"""Fresh rollouts of tasks, and how far tasks lie apart."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from rlanything.checks.shares import Share
from rlanything.core.types import Task
from rlanything.loop.contexts import next_prompt
from rlanything.loop.episodes import opening
from rlanything.loop.rollout import Assignment, RolloutWorker, Sampling

if TYPE_CHECKING:
    import torch

AT_ONCE = 512
"""Episodes that are rolled out together. It bounds the memory of their caches."""
REPORTED_S = 30.0
"""Seconds between two reports of progress."""


class Progress:
    """Says how many episodes are done, and how long the rest takes."""

    def __init__(self, episodes: int, say: Callable[[str], None]) -> None:
        self.episodes, self.say = episodes, say
        self.done, self.began, self.said = 0, time.monotonic(), time.monotonic()

    def add(self, episodes: int) -> None:
        """Count further episodes. It reports at most every `REPORTED_S` seconds."""
        self.done += episodes
        now = time.monotonic()
        if now - self.said < REPORTED_S:
            return
        self.said = now
        minutes = (now - self.began) / self.done * (self.episodes - self.done) / 60
        self.say(f"{self.done:,} of {self.episodes:,} episodes, about {minutes:.1f} min left")


def play(
    worker: RolloutWorker, tasks: Sequence[Task], rollouts: int, sampling: Sampling, progress: Progress
) -> dict[str, Share]:
    """Task id -> successes and episodes. Episodes that crashed are left out."""
    found = dict.fromkeys((task.task_id for task in tasks), (0, 0))
    for part in _parts(tasks, max(1, AT_ONCE // rollouts)):
        work = [Assignment(k, task, rollouts) for k, task in enumerate(part)]
        for trajectory in worker.roll_out(work, sampling):
            if trajectory.counts:
                hits, total = found[trajectory.task_id]
                found[trajectory.task_id] = hits + (trajectory.outcome == 1), total + 1
        progress.add(len(part) * rollouts)
    return found


def _parts(tasks: Sequence[Task], size: int) -> Iterator[Sequence[Task]]:
    for start in range(0, len(tasks), size):
        yield tasks[start : start + size]


class Map:
    """Where tasks lie: by the words of what opens an episode, and by a policy's embedding of it.

    The embedding is the mean of the last hidden states over the tokens of the policy's first prompt.
    """

    def __init__(self, worker: RolloutWorker, model: torch.nn.Module) -> None:
        self.worker, self.model = worker, model
        self.places: dict[str, tuple[frozenset[str], torch.Tensor]] = {}

    def distance(self, one: Task, other: Task) -> tuple[float, float]:
        """(1 - shared words / all words, 1 - cosine of the embeddings); 0 for the same opening."""
        import torch

        (words, near), (others, far) = self._place(one), self._place(other)
        lexical = 1 - len(words & others) / max(1, len(words | others))
        cosine = torch.nn.functional.cosine_similarity(near, far, dim=0)
        return lexical, max(0.0, 1 - float(cosine))

    def _place(self, task: Task) -> tuple[frozenset[str], torch.Tensor]:
        import torch

        if task.task_id not in self.places:
            first = opening(self.worker.family, task, 0)
            policy, shown_first = self.worker.policy, self.worker.kept(first)
            prompt = next_prompt(policy, self.worker.prompts, first.text, [], first, shown_first)
            ids = torch.tensor([prompt.ids], device=next(self.model.parameters()).device)
            eyes = policy.sight.eyes if policy.sight is not None else None
            pixels = {} if eyes is None else eyes.inputs(ids, prompt.images)
            with torch.no_grad():
                hidden = self.model(input_ids=ids, **pixels, output_hidden_states=True).hidden_states[-1]
            self.places[task.task_id] = frozenset(first.text.split()), hidden[0].double().mean(dim=0)
        return self.places[task.task_id]
