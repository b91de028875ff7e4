"""From evaluation files to the arrays that statistics works on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rlanything.report.records import Evaluation, SeedEvaluation, Tally
from rlanything.report.statistics import Panel

Channels = tuple[tuple[float, float], ...]
"""(hits, total) per channel, for one task of one seed."""
Panels = dict[str, dict[str, Panel]]
"""arm -> metric -> panel; a metric that was not measured is absent."""


def panels(evaluations: Mapping[str, Evaluation]) -> Panels:
    """Every metric of every arm that was measured."""
    return {arm: _of_arm(evaluation) for arm, evaluation in evaluations.items()}


def _of_arm(evaluation: Evaluation) -> dict[str, Panel]:
    made = {metric: _panel(evaluation, metric) for metric in METRICS}
    return {metric: panel for metric, panel in made.items() if panel is not None}


def _panel(evaluation: Evaluation, metric: str) -> Panel | None:
    cells = {seed: READ[metric](result) for seed, result in sorted(evaluation.seeds.items())}
    cells = {seed: found for seed, found in cells.items() if found}
    tasks = sorted({task for found in cells.values() for task in found})
    if not tasks:
        return None
    width = len(next(iter(next(iter(cells.values())).values())))
    empty: Channels = ((0.0, 0.0),) * width
    table = np.array(
        [[found.get(task, empty) for task in tasks] for found in cells.values()], dtype=np.float64
    )
    hits, totals = np.moveaxis(table, 3, 0).transpose(0, 3, 1, 2)
    limits = (0.0, float("inf")) if metric == "accepted_tasks" else (0.0, 1.0)
    return Panel(tuple(cells), tuple(tasks), hits, totals, limits)


def _outcomes(repeats: Mapping[str, Sequence[int | None]]) -> dict[str, Channels]:
    """Every task counts the same, whatever number of its repeats were valid."""
    valid = {task: [o for o in outcomes if o is not None] for task, outcomes in repeats.items()}
    return {task: ((sum(o) / len(o), 1.0),) for task, o in valid.items() if o}


def _in_domain(result: SeedEvaluation) -> dict[str, Channels]:
    return _outcomes(result.in_domain)


def _out_of_domain(result: SeedEvaluation) -> dict[str, Channels]:
    return _outcomes(result.out_of_domain)


def _process(result: SeedEvaluation) -> dict[str, Channels]:
    return {
        task: ((float(t.good.hits), float(t.good.total)), (float(t.bad.hits), float(t.bad.total)))
        for task, t in result.rm_process.items()
    }


def _tallies(tallies: Mapping[str, Tally]) -> dict[str, Channels]:
    return {task: ((float(t.hits), float(t.total)),) for task, t in tallies.items()}


def _outcome(result: SeedEvaluation) -> dict[str, Channels]:
    return _tallies(result.rm_outcome)


def _ut(result: SeedEvaluation) -> dict[str, Channels]:
    return _tallies(result.ut)


def _detect(result: SeedEvaluation) -> dict[str, Channels]:
    return _tallies(result.detect)


def _accepted(result: SeedEvaluation) -> dict[str, Channels]:
    """A count has no tasks to resample: one cell, whose 'share' is the count itself."""
    return {} if result.accepted_tasks is None else {"run": ((float(result.accepted_tasks), 1.0),)}


READ: Mapping[str, Callable[[SeedEvaluation], dict[str, Channels]]] = {
    "in_domain": _in_domain,
    "out_of_domain": _out_of_domain,
    "rm_process": _process,
    "rm_outcome": _outcome,
    "ut": _ut,
    "detect": _detect,
    "accepted_tasks": _accepted,
}
"""How each metric of either setting is read from one seed's results, in the order of the tables."""
METRICS = tuple(READ)
