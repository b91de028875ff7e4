"""What the experiments say together about every declared comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rlanything.checks.pooling.declare import Compared, Pooling
from rlanything.checks.pooling.experiments import Difference, Experiment
from rlanything.checks.pooling.random_effects import Pooled, pooled
from rlanything.report.results import statistics
from rlanything.report.results.metrics import Metric, named


@dataclass(frozen=True)
class Row:
    """One comparison in one metric; p of `pooled` is corrected.

    others: the differences of experiments that do not count, because of `reward_above`. unsure: the names of those that
    measured both arms, and the error of whose difference is not known.
    """

    compared: Compared
    metric: Metric
    differences: tuple[Difference, ...]
    others: tuple[Difference, ...]
    unsure: tuple[str, ...]
    pooled: Pooled


@dataclass(frozen=True)
class Found:
    """Everything that the check found. experiments: their names, also of those that only some rows have."""

    declared: Pooling
    experiments: tuple[str, ...]
    rows: tuple[Row, ...]


def pool(declared: Pooling, experiments: Sequence[Experiment]) -> Found:
    """Pool every comparison in every metric; p is Holm's over all of them."""
    rows = [_row(compared, metric, experiments) for compared, metric in declared.pairs]
    corrected = statistics.holm({number: row.pooled.p for number, row in enumerate(rows)})
    return Found(
        declared,
        tuple(one.name for one in experiments),
        tuple(
            replace(row, pooled=replace(row.pooled, p=corrected[number])) for number, row in enumerate(rows)
        ),
    )


def _row(compared: Compared, metric: str, experiments: Sequence[Experiment]) -> Row:
    measured = [(one.counts(compared), one.difference(compared, metric)) for one in experiments]
    found, others = (
        tuple(difference for counts, difference in measured if counts is wanted and difference is not None)
        for wanted in (True, False)
    )
    means = [difference.contrast.difference.mean for difference in found]
    mean = pooled(means, [difference.error**2 for difference in found])
    known = {difference.experiment for difference in (*found, *others)}
    unsure = tuple(
        one.name for one in experiments if one.measures(compared, metric) and one.name not in known
    )
    return Row(compared, named(metric), found, others, unsure, mean)
