"""The kinds of evidence behind a metric: how evaluation/<arm>.json stores them, and what statistics makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field

Channels = tuple[tuple[float, float], ...]
"""(hits, total) of each channel, for one task of one seed; a metric is the mean of its channels' shares."""
Outcome = Annotated[int, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0, le=10**15)]
"""No run counts further. A float holds each of them, and the integers of JSON have any number of digits."""


def _possible(hits: tuple[int, int]) -> tuple[int, int]:
    if hits[0] > hits[1]:
        raise ValueError(f"{hits[0]} hits of {hits[1]}")
    return hits


Hits = Annotated[tuple[Count, Count], AfterValidator(_possible)]
"""(hits, total): how many answers were right, and of how many."""


class StepHits(BaseModel):
    """A reward model's verdicts against the oracle's, over a task's good steps and over its bad ones."""

    good: Hits = (0, 0)
    bad: Hits = (0, 0)


@dataclass(frozen=True)
class Evidence:
    """One kind of evidence."""

    stored: Any
    """The type of one seed's results, as pydantic checks it."""
    channels: Callable[[Any], dict[str, Channels]]
    """One seed's results -> task -> channels; a task of which nothing was measured is absent."""
    is_share: bool = True
    """Between 0 and 1 and shown in percent; otherwise a count."""


def _outcomes(repeats: Mapping[str, Sequence[int | None]]) -> dict[str, Channels]:
    valid = {task: [o for o in outcomes if o is not None] for task, outcomes in repeats.items()}
    return {task: ((sum(o) / len(o), 1.0),) for task, o in valid.items() if o}


def _hits(tasks: Mapping[str, tuple[int, int]]) -> dict[str, Channels]:
    return {task: (hits,) for task, hits in tasks.items()}


def _balanced(steps: Mapping[str, StepHits]) -> dict[str, Channels]:
    return {task: (found.good, found.bad) for task, found in steps.items()}


def _plain(steps: Mapping[str, StepHits]) -> dict[str, Channels]:
    return {task: (_both(found.good, found.bad),) for task, found in steps.items()}


def _both(good: tuple[int, int], bad: tuple[int, int]) -> tuple[float, float]:
    return good[0] + bad[0], good[1] + bad[1]


def _count(count: int | None) -> dict[str, Channels]:
    return {} if count is None else {"run": ((count, 1.0),)}


OUTCOMES = Evidence(dict[str, list[Outcome | None]], _outcomes)
"""task -> 1 or 0 for each repeat; null: the environment failed. Every task weighs the same."""
HITS = Evidence(dict[str, Hits], _hits)
"""task -> [hits, total]; a task with a larger total weighs more."""
BALANCED_HITS = Evidence(dict[str, StepHits], _balanced)
"""task -> {good: [hits, total], bad: [hits, total]}; the mean of both shares, so a constant answer scores 0.5."""
PLAIN_HITS = Evidence(dict[str, StepHits], _plain)
"""The same results as one share: all steps weigh the same, good or bad."""
COUNT = Evidence(Count | None, _count, is_share=False)
"""A number of the whole run. It has no tasks to resample, so only the spread between seeds gives an interval."""
