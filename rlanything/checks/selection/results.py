"""What a selection found: every method's choices scored on the problems' own tests, paired with the base's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rlanything.checks.selection.declare import ORACLE, SINGLE, Selection
from rlanything.checks.selection.measure import Pair
from rlanything.checks.selection.methods import METHODS, Trials, chosen
from rlanything.config import BASE
from rlanything.core.types import Json
from rlanything.report.results.comparison import Comparison
from rlanything.report.results.evaluations import Panels, panel_of
from rlanything.report.results.metrics import Metric, policy_metric
from rlanything.report.results.statistics import Contrast, Estimate

Measured = Mapping[str, Mapping[int, Mapping[str, Trials]]]
"""arm -> seed -> task id -> what its programs and tests did."""


@dataclass(frozen=True)
class Row:
    """One column of one pair: a method, or a bound.

    value: the share of problems that are solved. over_base: minus the same of the base's pair, p by Holm over the arms.
    over_single: minus a single program of the same pair, p by Holm over the pair's methods. None: no such difference.
    """

    arm: str
    column: str
    value: Estimate
    over_base: Contrast | None
    over_single: Contrast | None


@dataclass(frozen=True)
class Counts:
    """What was sampled for a pair, over seeds and problems."""

    programs: int = 0
    lost: int = 0
    """Programs that were never judged, because their episode crashed."""
    tests: int = 0
    unreadable: int = 0
    unknown: int = 0
    """Programs of which the sandbox could not say whether they are right."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, name) + getattr(other, name) for name in vars(self)))


@dataclass(frozen=True)
class Found:
    """Everything that a selection found."""

    selection: Selection
    metric: Metric
    seeds: tuple[int, ...]
    problems: int
    rows: tuple[Row, ...]
    counts: Mapping[str, Counts]
    keys: Mapping[str, Mapping[int, str]]
    """arm -> seed -> the key of what was measured."""

    @property
    def arms(self) -> tuple[str, ...]:
        """The measured pairs, the base's first."""
        return tuple(self.counts)

    def of(self, arm: str) -> list[Row]:
        """The rows of a pair, in the order of the columns."""
        return [row for row in self.rows if row.arm == arm]


def read(selection: Selection, pairs: Sequence[Pair]) -> Found:
    """What the measured pairs give. Raises `ConfigError` for a file that cannot be read."""
    measured: dict[str, dict[int, Mapping[str, Trials]]] = {}
    keys: dict[str, dict[int, str]] = {}
    for pair in pairs:
        measured.setdefault(pair.arm, {})[pair.seed] = pair.trials()
        keys.setdefault(pair.arm, {})[pair.seed] = pair.key
    metric = policy_metric(selection.panel)
    seeds = tuple(measured[BASE])
    problems = len(measured[BASE][seeds[0]])
    counts = {arm: _counts(selection, by_seed) for arm, by_seed in measured.items()}
    return Found(selection, metric, seeds, problems, tuple(_rows(selection, measured, metric)), counts, keys)


def outcomes(column: str, trials: Trials) -> list[Json]:
    """1 or 0 for each program that a column stands for, None where it could not be found out; [] for no program."""
    right = trials.right
    if column == SINGLE:
        return [None if known is None else int(known) for known in right]
    if column == ORACLE:
        return [1 if True in right else None if None in right else 0] if right else []
    number = chosen(METHODS[column], trials)
    known = None if number is None else right[number]
    return [] if number is None else [None if known is None else int(known)]


def _rows(selection: Selection, measured: Measured, metric: Metric) -> Iterator[Row]:
    found = Comparison(_panels(selection, measured, metric), (metric,))
    trained = [arm for arm in measured if arm != BASE]
    over_base = {
        column: found.contrasts(((_name(arm, column), _name(BASE, column)) for arm in trained), metric)
        for column in selection.columns
    }
    for arm in measured:
        over_single = found.contrasts(
            ((_name(arm, method), _name(arm, SINGLE)) for method in selection.methods), metric
        )
        for column in selection.columns:
            name, value = _name(arm, column), found.estimate(_name(arm, column), metric)
            if value is not None:
                base = over_base[column].get((name, _name(BASE, column)))
                yield Row(arm, column, value, base, over_single.get((name, _name(arm, SINGLE))))


def _panels(selection: Selection, measured: Measured, metric: Metric) -> Panels:
    """One panel for each pair and column, by `_name`."""
    panels: Panels = {}
    for arm, by_seed in measured.items():
        for column in selection.columns:
            cells = {
                seed: metric.evidence.channels({task: outcomes(column, t) for task, t in tasks.items()})
                for seed, tasks in by_seed.items()
            }
            panel = panel_of(metric, cells)
            panels[_name(arm, column)] = {} if panel is None else {metric.name: panel}
    return panels


def _name(arm: str, column: str) -> str:
    return f"{arm}/{column}"


def _counts(selection: Selection, by_seed: Mapping[int, Mapping[str, Trials]]) -> Counts:
    return sum((_count(selection, t) for tasks in by_seed.values() for t in tasks.values()), Counts())


def _count(selection: Selection, trials: Trials) -> Counts:
    programs, readable = len(trials.right), trials.readable
    return Counts(
        programs,
        selection.programs - programs,
        len(readable),
        readable.count(False),
        trials.right.count(None),
    )
