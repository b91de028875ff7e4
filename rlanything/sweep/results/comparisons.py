"""Comparisons of trials: each with the project's default, and the winner with both baselines on fresh seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import asdict, dataclass
from typing import Any

from rlanything.report.results.statistics import Contrast, Estimate, corrected
from rlanything.sweep.trials.board import Board


def differences(board: Board) -> dict[int, Contrast]:
    """Number -> the trial minus the project's default in the first objective, for every other finished trial.

    p is corrected by Holm over all points.
    """
    default = board.baselines().get("default")
    if default is None:
        return {}
    sources = {t.number: board.source(t.number) for t in board.complete()}
    compared = _compared(board, default, set(sources.values()))
    return {n: compared[source] for n, source in sources.items() if source in compared}


def _compared(board: Board, default: int, sources: Set[int]) -> dict[int, Contrast]:
    """Each point once: a trial that took over another one's result has that one's p, and is not counted again."""
    goal, base = board.sweep.goals[0], board.measured(default)
    found = {
        n: c
        for n in sorted(sources - {board.source(default)})
        if (c := board.measured(n).above(base, goal)) is not None
    }
    return corrected(found)


@dataclass(frozen=True)
class Confirmed:
    """The winner against one baseline: its lead on the seeds that chose it, and on fresh seeds.

    `luck` is the part of the lead that fresh seeds did not show. Its interval is that of a difference between two
    estimates that have intervals (MOVER; Zou and Donner, 2008). They are taken as independent, so it is too wide.
    """

    objective: str
    winner: int
    baseline: str
    against: int
    lead: Estimate
    fresh: Estimate
    mean: Estimate
    fresh_mean: Estimate

    @property
    def luck(self) -> Estimate:
        """Lead on the choosing seeds minus lead on the fresh ones."""
        mean = self.lead.mean - self.fresh.mean
        low, high, fresh_low, fresh_high = self.lead.low, self.lead.high, self.fresh.low, self.fresh.high
        if low is None or high is None or fresh_low is None or fresh_high is None:
            return Estimate(mean, None, None)
        below = math.hypot(self.lead.mean - low, fresh_high - self.fresh.mean)
        above = math.hypot(high - self.lead.mean, self.fresh.mean - fresh_low)
        return Estimate(mean, mean - below, mean + above)

    def to_json(self) -> dict[str, Any]:
        """All fields and `luck`."""
        return {**asdict(self), "luck": asdict(self.luck)}


@dataclass(frozen=True)
class FreshMeans:
    """What a trial achieved on fresh seeds, which had no part in choosing it: objective -> mean with its interval.

    names: `best`, `paper`, `default`, as far as they are this point.
    """

    trial: int
    names: tuple[str, ...]
    means: Mapping[str, Estimate]


def fresh_means(board: Board) -> list[FreshMeans]:
    """Of the winner and the baselines, each point once; without those whose run crashed or is not finished."""
    best, found = board.best(), []
    named = {**({"best": best.number} if best is not None else {}), **board.baselines()}
    for number in board.candidates():
        measured = board.fresh.measured(number)
        if measured is None:
            continue
        goals = zip(board.sweep.objectives, board.sweep.goals, strict=True)
        means = {name: e for name, goal in goals if (e := measured.estimate(goal)) is not None}
        names = tuple(name for name, n in named.items() if board.source(n) == number)
        found.append(FreshMeans(number, names, means))
    return found


def confirmation(board: Board) -> list[Confirmed]:
    """The winner against each baseline; empty without fresh seeds, or where the winner is the baseline."""
    best = board.best()
    if best is None:
        return []
    found = []
    winner = board.source(best.number)
    for label, number in board.baselines().items():
        against = board.source(number)
        if against != winner:
            compared = _confirmed(board, winner, label, against)
            found += [compared] if compared is not None else []
    return found


def _confirmed(board: Board, winner: int, label: str, number: int) -> Confirmed | None:
    goal = board.sweep.goals[0]
    fresh, other = board.fresh.measured(winner), board.fresh.measured(number)
    if fresh is None or other is None:
        return None
    lead = board.measured(winner).above(board.measured(number), goal)
    again = fresh.above(other, goal)
    mean, fresh_mean = board.measured(winner).estimate(goal), fresh.estimate(goal)
    if lead is None or again is None or mean is None or fresh_mean is None:
        return None
    return Confirmed(
        board.sweep.objectives[0], winner, label, number, lead.difference, again.difference, mean, fresh_mean
    )
