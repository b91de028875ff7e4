"""What may not be concluded: open comparisons, with the difference that would have been found, and the rest."""

from __future__ import annotations

from collections.abc import Iterator

from rlanything.config import BASE_COOLED
from rlanything.report.formatting import code, interval, markdown_table, p_text, smallest
from rlanything.report.report_data import ReportData
from rlanything.report.results import questions
from rlanything.report.results.comparison import Comparison
from rlanything.report.results.metrics import Metric
from rlanything.report.results.power import Components
from rlanything.report.results.questions import Pair
from rlanything.report.results.statistics import Contrast, differences, spread
from rlanything.report.sections.parts import bullets

POWER = 0.8
SEVERAL = 5
"""With fewer seeds a difference is found clearly less often than the formula says."""
HEADER = ["comparison", "difference", "p (Holm)", "would have been found"]


def limits(data: ReportData) -> str:
    """The section."""
    rows = list(_open(data))
    table = (
        f"These comparisons are open. An open one is not evidence that two arms are equal. The last column is the "
        f"smallest true difference, in points, that as many seeds and tasks find with probability {POWER:g}, roughly: "
        f"by the t-test without Holm's correction.{_cautious(data)}\n\n{markdown_table(HEADER, rows)}"
        if rows
        else "No comparison of this report is open.\n"
    )
    return f"## What may not be concluded\n\n{table}{bullets(list(_always(data)))}"


def _cautious(data: ReportData) -> str:
    """What the formula leaves out, where it matters (`results/power.py`)."""
    few = 1 < _fewest(data) < SEVERAL
    return " With so few seeds the test is more cautious than that, and finds it less often." if few else ""


def _fewest(data: ReportData) -> int:
    return min(len(data.comparison.seeds(arm)) for arm in data.comparison.arms)


def _open(data: ReportData) -> Iterator[list[str]]:
    """The comparisons of the report that are not clear, by metric and question, p over all of one question.

    Of the reward model's metrics, those of arms that train one: in the others it is the base's.
    """
    comparison, config = data.comparison, data.config
    for metric in data.contents.shares:
        for pairs in _questions(comparison, metric):
            for pair, found in comparison.contrasts(pairs, metric).items():
                trained = pair[0] in config.arms and config.arms[pair[0]].train_reward
                if not found.clear and (trained or metric.is_success):
                    yield _row(comparison, pair, metric, found)


def _questions(comparison: Comparison, metric: Metric) -> list[list[Pair]]:
    """The pairs that the report compares by this metric, those of one question together."""
    arms = comparison.arms
    if not metric.is_success:
        return [questions.over_base(arms)]
    cooled = [questions.controls(arms), questions.over_cooled(arms)] if BASE_COOLED in arms else []
    return [questions.over_base(arms), *cooled, questions.beyond_outcome(arms), questions.steps(arms)]


def _row(comparison: Comparison, pair: Pair, metric: Metric, found: Contrast) -> list[str]:
    return [
        f"{code(pair[0])} against {code(pair[1])}, {metric.short}",
        interval(found.difference, metric, sign=True),
        p_text(found.p),
        smallest(_detectable(comparison, pair, metric), metric),
    ]


def _detectable(comparison: Comparison, pair: Pair, metric: Metric) -> float | None:
    """The smallest difference that the design finds; None where it cannot be known, or where nothing varies."""
    upper, lower = (comparison.panels[arm][metric.name] for arm in pair)
    cells = differences(upper, lower)
    found = None if cells is None else spread(cells)
    if cells is None or found is None or min(cells.shape) < 2 or found.variance == 0.0:
        return None
    seeds, tasks = cells.shape
    return Components.of(cells).detectable(seeds, tasks, POWER)


def _always(data: ReportData) -> Iterator[str]:
    """What no number of this report says."""
    config, seeds = data.config, _fewest(data)
    yield (
        f"About other settings: everything here is from environment {code(config.env['_target_'])} at scale "
        f"{code(config.scale)}, {config.train.iterations} iterations, with one setting of every other number."
    )
    yield (
        "About other base models and training tasks: all seeds begin with the same ones. With another experiment seed "
        "(`seed`) both are others, and a difference can lie outside of these intervals."
    )
    if data.contents.paper.shown:
        yield f"About the paper's levels: {data.contents.paper.source} has other models and other tasks."
    if seeds == 1:
        yield "About other training runs: with one seed the intervals come from the tasks alone."
    else:
        yield (
            f"About a single new run: an interval over {seeds} seeds is for their mean. A run may lie outside of it."
        )
    if data.cooled is None:
        yield (
            "About less randomness: no cooled base was measured, so part of a gain may be that of a lower temperature."
        )
    if questions.OUTCOME not in data.comparison.arms:
        yield "About what votes add: no arm learned from outcomes alone."
