"""Compares the decisions of other rules on a run's rollouts with those of its own rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite, nan, sqrt
from typing import Any

from rlanything.core.types import DECISIONS
from rlanything.loop.iteration import IterationResult
from rlanything.loop.metrics import mean_or_none
from rlanything.repro.replay import Decided, Replayed

_METRICS = ("band_coverage", "accept_rate")


@dataclass(frozen=True)
class Flip:
    """A rewrite that one of the two rules accepts and the other rejects.

    before, after: acc(q), acc(q'). own, other: the decision of each rule, `accepted` or `rejected`."""

    iteration: int
    slot: int
    direction: str
    before: float
    after: float
    own: str
    other: str


@dataclass
class Pairs:
    """Pairs of advantages of the same step (or vote) under both rules, as running sums.

    count: pairs. flipped: pairs with opposite signs. sums: of x, y, x*x, y*y and x*y (x: own, y: other)."""

    count: int = 0
    flipped: int = 0
    sums: list[float] = field(default_factory=lambda: [0.0] * 5)

    def add(self, own: float, other: float) -> None:
        """One more pair."""
        self.count += 1
        self.flipped += own * other < 0
        products = (own, other, own * own, other * other, own * other)
        self.sums = [s + p for s, p in zip(self.sums, products, strict=True)]

    @property
    def correlation(self) -> float:
        """Pearson's correlation; nan for fewer than two pairs, or when one side is constant."""
        if self.count < 2:
            return nan
        x, y, xx, yy, xy = (s / self.count for s in self.sums)
        spread = sqrt(max(xx - x * x, 0.0) * max(yy - y * y, 0.0))
        return (xy - x * y) / spread if spread > 1e-12 else nan


@dataclass
class WhatIf:
    """Totals over the iterations of a run.

    asked: number of wanted rewrites by direction. unknown: rewrites that only the other rules want. decided: number of
    rewrites by the decisions (own, other). trains: trajectories and votes that train. metrics: values by iteration."""

    asked: dict[str, Counter[str]] = field(default_factory=lambda: {"own": Counter(), "other": Counter()})
    unknown: int = 0
    decided: Counter[tuple[str, str]] = field(default_factory=Counter)
    flips: list[Flip] = field(default_factory=list)
    steps: Pairs = field(default_factory=Pairs)
    votes: Pairs = field(default_factory=Pairs)
    trains: dict[str, Counter[str]] = field(default_factory=lambda: {"own": Counter(), "other": Counter()})
    metrics: dict[str, tuple[list[float], list[float]]] = field(default_factory=dict)

    def add(self, replayed: Replayed) -> None:
        """Count one iteration."""
        own, other = replayed.own, replayed.other
        if own is None or other is None:
            return
        for side, decided in (("own", own), ("other", other)):
            self.asked[side].update(_asked(decided))
            self.trains[side].update(_trains(decided))
        self.unknown += len(other.unanswered)
        self._decisions(replayed.iteration, own.result, other.result)
        self._advantages(own, other)
        for key in _METRICS:
            values = self.metrics.setdefault(key, ([], []))
            for into, result in zip(values, (own.result, other.result), strict=True):
                value = result.metrics[key]
                if isfinite(value):
                    into.append(value)

    def to_json(self) -> dict[str, Any]:
        """As a JSON object; a value that cannot be computed is null."""
        return {
            "asked": {side: dict(sorted(counts.items())) for side, counts in self.asked.items()},
            "asked_only_now": self.unknown,
            "decisions": {f"{a} -> {b}": n for (a, b), n in sorted(self.decided.items())},
            "flips": [vars(flip) for flip in self.flips],
            "trains": {side: dict(sorted(counts.items())) for side, counts in self.trains.items()},
            "steps": _pairs(self.steps),
            "votes": _pairs(self.votes),
            "metrics": {
                key: [mean_or_none(values) for values in sides] for key, sides in self.metrics.items()
            },
        }

    def _decisions(self, iteration: int, own: IterationResult, other: IterationResult) -> None:
        theirs = {e.slot: e for e in other.events if e.kind in DECISIONS}
        for event in own.events:
            if event.kind not in DECISIONS:
                continue
            now = theirs[event.slot]
            self.decided[event.kind.value, now.kind.value] += 1
            if event.kind is not now.kind and event.accuracy is not None:
                self.flips.append(
                    Flip(
                        iteration,
                        event.slot,
                        event.direction.value,
                        now.parent_accuracy,
                        event.accuracy,
                        event.kind.value,
                        now.kind.value,
                    )
                )

    def _advantages(self, own: Decided, other: Decided) -> None:
        for into, ours, theirs in (
            (self.steps, dict(_step_advantages(own.result)), dict(_step_advantages(other.result))),
            (self.votes, dict(_reply_advantages(own)), dict(_reply_advantages(other))),
        ):
            for place, advantage in ours.items():
                if place in theirs:
                    into.add(advantage, theirs[place])


def _asked(decided: Decided) -> Iterator[str]:
    for event in decided.result.events:
        if event.kind not in DECISIONS:
            yield event.direction.value
    for _, way, _, _ in decided.unanswered:
        yield way.value


def _trains(decided: Decided) -> dict[str, int]:
    return {
        "trajectories": len(decided.result.policy),
        "votes": sum(1 for _ in _reply_advantages(decided)),
    }


def _step_advantages(result: IterationResult) -> Iterator[tuple[object, float]]:
    """(key of the step, advantage) of every step that trains the policy."""
    for group in result.groups:
        for episode in group.episodes:
            for step, advantage in enumerate(episode.advantages or ()):
                yield (group.slot, group.task.task_id, episode.trajectory.rollout, step), advantage


def _reply_advantages(decided: Decided) -> Iterator[tuple[object, float]]:
    """(key of the reply, advantage) of every vote or test that trains the reward model."""
    for place, lesson in decided.taught.items():
        for number, advantage in enumerate(lesson.advantages):
            if advantage is not None:
                yield (place, number), advantage


def _pairs(pairs: Pairs) -> dict[str, float | None]:
    correlation = pairs.correlation
    return {
        "in_both": pairs.count,
        "sign_changed": pairs.flipped,
        "correlation": correlation if isfinite(correlation) else None,
    }
