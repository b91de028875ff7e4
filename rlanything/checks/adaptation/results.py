"""What the fresh rollouts say about the rewrites, with intervals over seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from rlanything.checks.adaptation.course import DISTANCES, Moment, Trend, moments, trends
from rlanything.checks.adaptation.declare import Adaptation, Pair
from rlanything.checks.adaptation.finished import Answers, Run
from rlanything.checks.adaptation.rewrites import RULES, Rewrite, decides, inside
from rlanything.checks.shares import Share
from rlanything.core.adaptation import AcceptanceRule
from rlanything.report.results import statistics
from rlanything.report.results.evaluations import panel_of
from rlanything.report.results.evidence import HITS
from rlanything.report.results.metrics import Metric
from rlanything.report.results.statistics import (
    COUNTS,
    ONE_CELL,
    SHARES,
    Contrast,
    Estimate,
    Limits,
    Panel,
    estimate,
    seed_means,
)

SHARE = Metric("share", "share", {}, HITS)
CHANGES: Limits = (-1.0, 1.0)
"""Between which a change of a share can lie."""
WHOLE = "all"
PARTS = (WHOLE, "replaced", "kept")
"""Of the first tasks: all, those of slots with an accepted rewrite, and the others. The last two differ by seed."""
Value = Callable[[Rewrite, Mapping[str, Share]], float]
"""Of a rewrite, from a policy's fresh rollouts (task id -> counts)."""


@dataclass(frozen=True)
class Row:
    """What a rule would have accepted, as one policy finds it. Changes are in the direction asked for, in shares.

    accepted: rewrites of a seed. The others are of those whose fresh rollouts did not all crash. recorded: the change
    that the run measured. fresh: the change on fresh rollouts. right: share whose fresh change is above 0. inside:
    share of new tasks whose fresh accuracy is in the band.
    """

    probe: str
    rule: str
    accepted: Estimate | None
    recorded: Estimate | None
    fresh: Estimate | None
    right: Estimate | None
    inside: Estimate | None


@dataclass(frozen=True)
class Compared:
    """Which share of the new tasks that each of two rules accepts is in the band, as one policy finds it.

    difference: that of `rule` minus that of `over`, paired by seed. Its p is Holm's over all pairs of rules and
    policies. None where no seed has both.
    """

    probe: str
    rule: str
    over: str
    difference: Contrast | None


@dataclass(frozen=True)
class Lost:
    """Success on first tasks of the final policy with rewriting, without, and the difference; its p is Holm's."""

    part: str
    arm: Estimate | None
    against: Estimate | None
    difference: Contrast | None


Tested = TypeVar("Tested", Compared, Lost)
"""A row of a table whose differences are tested."""


@dataclass(frozen=True)
class Distance:
    """How far rewritten slots are from their first tasks, and first tasks from each other; 0 is the same."""

    by: str
    moved: Estimate | None
    apart: Estimate | None


@dataclass(frozen=True)
class Found:
    """Everything that an adaptation check found. keys: seed -> the key of what was measured."""

    declared: Adaptation
    band: AcceptanceRule
    seeds: tuple[int, ...]
    rewrites: Mapping[int, int]
    rows: tuple[Row, ...]
    compared: tuple[Compared, ...]
    lost: tuple[Lost, ...]
    distances: tuple[Distance, ...]
    moments: tuple[Moment, ...]
    trends: tuple[Trend, ...]
    keys: Mapping[int, str]


def read(declared: Adaptation, band: AcceptanceRule, measured: Sequence[Run]) -> Found:
    """What was measured of every run. Raises `ConfigError` for a file that cannot be read."""
    answers = {run.seed: run.answers(declared.probes) for run in measured}
    rows = tuple(_row(probe, rule, band, answers) for probe in declared.probes for rule in RULES)
    pairs = [(probe, pair) for probe in declared.probes for pair in declared.compare]
    compared = _corrected([_comparison(probe, pair, band, answers) for probe, pair in pairs])
    lost = _corrected([_lost(declared, part, answers) for part in PARTS]) if declared.against else ()
    distances = tuple(_distance(k, by, answers) for k, by in enumerate(("words", "embedding")))
    counts = {seed: len(found.rewrites) for seed, found in answers.items()}
    keys = {run.seed: run.key for run in measured}
    courses = {seed: found.course for seed, found in answers.items()}
    course = moments(courses, declared.arms), trends(courses, declared.arms)
    return Found(declared, band, tuple(answers), counts, rows, compared, lost, distances, *course, keys)


def _row(probe: str, rule: str, band: AcceptanceRule, answers: Mapping[int, Answers]) -> Row:
    taken = _taken(probe, rule, band, answers)

    def over(value: Value, limits: Limits) -> Estimate | None:
        return estimate(seed_means(_values(probe, taken, answers, value), limits))

    return Row(
        probe,
        rule,
        accepted=estimate(seed_means({seed: [len(rewrites)] for seed, rewrites in taken.items()}, COUNTS)),
        recorded=over(lambda r, _: r.sign * (r.after - r.before), CHANGES),
        fresh=over(_change, CHANGES),
        right=over(lambda r, played: float(_change(r, played) > 0), SHARES),
        inside=over(_in(band), SHARES),
    )


def _comparison(probe: str, pair: Pair, band: AcceptanceRule, answers: Mapping[int, Answers]) -> Compared:
    """How two rules differ; p is not corrected yet."""

    def panel(rule: str) -> Panel | None:
        return seed_means(_values(probe, _taken(probe, rule, band, answers), answers, _in(band)), SHARES)

    first, second = panel(pair.rule), panel(pair.over)
    difference = statistics.contrast(first, second) if first and second else None
    return Compared(probe, pair.rule, pair.over, difference)


def _taken(
    probe: str, rule: str, band: AcceptanceRule, answers: Mapping[int, Answers]
) -> dict[int, list[Rewrite]]:
    """Seed -> the rewrites that a rule accepts."""
    return {
        seed: [r for r in found.rewrites if decides(rule, r, band, found.again[probe])]
        for seed, found in answers.items()
    }


def _values(
    probe: str, taken: Mapping[int, list[Rewrite]], answers: Mapping[int, Answers], value: Value
) -> dict[int, list[float]]:
    """Seed -> the value of each accepted rewrite that could be measured."""

    def of(rewrites: list[Rewrite], played: Mapping[str, Share]) -> list[float]:
        return [value(r, played) for r in rewrites if _measured(r, played)]

    return {seed: of(rewrites, answers[seed].probes[probe]) for seed, rewrites in taken.items()}


def _in(band: AcceptanceRule) -> Value:
    """Whether the new task is in the band."""
    return lambda rewrite, played: float(inside(_accuracy(played[rewrite.new]), band))


def _measured(rewrite: Rewrite, played: Mapping[str, Share]) -> bool:
    """Whether some rollout of both tasks did not crash."""
    return bool(played[rewrite.old][1] and played[rewrite.new][1])


def _change(rewrite: Rewrite, played: Mapping[str, Share]) -> float:
    """The change of accuracy in the direction asked for."""
    return rewrite.sign * (_accuracy(played[rewrite.new]) - _accuracy(played[rewrite.old]))


def _accuracy(share: Share) -> float:
    return share[0] / share[1]


def _lost(declared: Adaptation, part: str, answers: Mapping[int, Answers]) -> Lost:
    """The first tasks of a part, played by both final policies."""
    with_, without = (
        panel_of(SHARE, {seed: _cells(found, arm, part) for seed, found in answers.items()})
        for arm in declared.arms
    )
    difference = statistics.contrast(with_, without) if with_ and without else None
    return Lost(part, estimate(with_), estimate(without), difference)


def _corrected(rows: Sequence[Tested]) -> tuple[Tested, ...]:
    """The rows of one table, their p by Holm over all of them."""
    asked = {place: row.difference for place, row in enumerate(rows) if row.difference is not None}
    known = statistics.corrected(asked)
    return tuple(replace(row, difference=known.get(place)) for place, row in enumerate(rows))


def _cells(found: Answers, arm: str, part: str) -> dict[str, tuple[Share]]:
    """Task -> counts; one cell for a part whose tasks differ between seeds."""
    played = {task: share for task, share in found.first[arm].items() if share[1]}
    if part == WHOLE:
        return {task: (share,) for task, share in played.items()}
    some = [share for task, share in played.items() if (task in found.moved.slots) == (part == "replaced")]
    return {ONE_CELL: ((sum(s[0] for s in some), sum(s[1] for s in some)),)} if some else {}


def _distance(place: int, by: str, answers: Mapping[int, Answers]) -> Distance:
    moved = {seed: [d[place] for d in found.moved.slots.values()] for seed, found in answers.items()}
    apart = {s: [f.moved.apart[place]] for s, f in answers.items() if f.moved.apart is not None}
    return Distance(by, estimate(seed_means(moved, DISTANCES)), estimate(seed_means(apart, DISTANCES)))
