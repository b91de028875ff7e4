"""What other rules would have done with a run's own rollouts, beside what its own rules did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite, nan, sqrt
from typing import Any

from rlanything.core.types import EventKind
from rlanything.loop.iteration import Harvest
from rlanything.repro.replay import Decided, Replayed

_DECISIONS = (EventKind.ACCEPTED, EventKind.REJECTED)
_METRICS = ("band_coverage", "accept_rate")


@dataclass(frozen=True)
class Flip:
    """A rewrite on which the rules disagree. `before`, `after`: acc(q), acc(q')."""

    iteration: int
    slot: int
    direction: str
    before: float
    after: float
    own: str
    other: str


@dataclass
class Pairs:
    """Advantages of the same step (or vote) under both rules, as running sums."""

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
        """Pearson's; nan for fewer than two pairs, or when one side never varies."""
        if self.count < 2:
            return nan
        x, y, xx, yy, xy = (s / self.count for s in self.sums)
        spread = sqrt(max(xx - x * x, 0.0) * max(yy - y * y, 0.0))
        return (xy - x * y) / spread if spread > 1e-12 else nan


@dataclass
class WhatIf:
    """Totals over the iterations of a run."""

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
        if other is None:
            return
        for side, decided in (("own", own), ("other", other)):
            self.asked[side].update(_asked(decided))
            self.trains[side].update(_trains(decided.harvest))
        self.unknown += len(other.unanswered)
        self._decisions(replayed.iteration, own.harvest, other.harvest)
        self._advantages(own.harvest, other.harvest)
        for key in _METRICS:
            values = self.metrics.setdefault(key, ([], []))
            for into, harvest in zip(values, (own.harvest, other.harvest), strict=True):
                value = harvest.metrics[key]
                if isfinite(value):
                    into.append(value)

    def to_json(self) -> dict[str, Any]:
        """As a JSON object; what cannot be measured is null."""
        return {
            "asked": {side: dict(sorted(counts.items())) for side, counts in self.asked.items()},
            "asked_only_now": self.unknown,
            "decisions": {f"{a} -> {b}": n for (a, b), n in sorted(self.decided.items())},
            "flips": [vars(flip) for flip in self.flips],
            "trains": {side: dict(sorted(counts.items())) for side, counts in self.trains.items()},
            "steps": _pairs(self.steps),
            "votes": _pairs(self.votes),
            "metrics": {key: [_mean(values) for values in sides] for key, sides in self.metrics.items()},
        }

    def _decisions(self, iteration: int, own: Harvest, other: Harvest) -> None:
        theirs = {e.slot: e for e in other.events if e.kind in _DECISIONS}
        for event in own.events:
            if event.kind not in _DECISIONS:
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

    def _advantages(self, own: Harvest, other: Harvest) -> None:
        now = {id(lesson.trajectory): lesson.advantages for lesson in other.policy}
        for lesson in own.policy:
            for a, b in zip(lesson.advantages, now.get(id(lesson.trajectory), ()), strict=False):
                self.steps.add(a, b)
        votes = dict(_vote_advantages(other))
        for key, a in _vote_advantages(own):
            if key in votes:
                self.votes.add(a, votes[key])


def _asked(decided: Decided) -> Iterator[str]:
    for event in decided.harvest.events:
        if event.kind not in _DECISIONS:
            yield event.direction.value
    for _, way, _, _ in decided.unanswered:
        yield way.value


def _trains(harvest: Harvest) -> dict[str, int]:
    return {
        "trajectories": len(harvest.policy),
        "votes": sum(1 for _ in _vote_advantages(harvest)),
    }


def _vote_advantages(harvest: Harvest) -> Iterator[tuple[tuple[int, int], float]]:
    """((judgement's identity, vote), advantage) of every vote that trains; both rules saw the same judgements."""
    for lesson in harvest.reward:
        for judgement, advantages in zip(lesson.judgements, lesson.advantages, strict=True):
            for number, advantage in enumerate(advantages):
                if advantage is not None:
                    yield (id(judgement), number), advantage


def _pairs(pairs: Pairs) -> dict[str, float | None]:
    correlation = pairs.correlation
    return {
        "in_both": pairs.count,
        "sign_changed": pairs.flipped,
        "correlation": correlation if isfinite(correlation) else None,
    }


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
