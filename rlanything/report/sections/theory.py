"""The paper's two theorems, as the votes of the training had them: at the start, at the end, and over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rlanything.report.formatting import code, markdown_table
from rlanything.report.report_data import ReportData
from rlanything.report.results.curves import Run
from rlanything.report.sections.parts import FIRST_AND_LAST, from_to, images, percent

HEADER = [
    "arm",
    "p+",
    "p−",
    "mu",
    "right order",
    "bound",
    "below the bound",
    "norms f+ / f−",
    "one-sided tasks",
]
WORDS = (
    "p+ is the share of good votes on steps of successes, p− that of bad votes on steps of failures, and mu their sum. "
    "Theorem 1: for mu above 1, more votes bring more pairs of a step of a success and one of a failure into the right "
    "order, and independent votes reach at least the bound. *Right order* is the share of pairs that the mean votes "
    "did order rightly; ties count as wrong. Votes on the steps of one episode are not independent, so the bound is a "
    "comparison and no guarantee. Theorem 2: an arm that trains its reward model should learn from successes and "
    "failures alike; the ratio of their norms is then near 1."
)


def theory(data: ReportData) -> str:
    """The section; '' where nobody votes on steps."""
    if not data.contents.acts:
        return ""
    voted = {arm: runs for arm, runs in data.curves.items() if any(run.get("mu") for run in runs.values())}
    if not voted:
        return "## Theory over time\n\nNo arm of this report has votes on steps.\n"
    rows = [[code(arm), *_cells(runs)] for arm, runs in voted.items()]
    return (
        f"## Theory over time\n\n{images(data, 'theory')}{WORDS}\n\n"
        f"{FIRST_AND_LAST} Percent, except mu and the ratio.\n\n{markdown_table(HEADER, rows)}"
    )


def _cells(runs: Mapping[int, Run]) -> Iterator[str]:
    yield from_to(runs, "p_plus", percent)
    yield from_to(runs, "p_minus", percent)
    yield from_to(runs, "mu", "{:.2f}".format)
    yield from_to(runs, "precision", percent)
    yield from_to(runs, "precision_bound", percent)
    yield _below(runs)
    yield from_to(runs, "task_force_ratio", "{:.2f}".format)
    yield from_to(runs, "one_sided_tasks", percent)


def _below(runs: Mapping[int, Run]) -> str:
    """In how many iterations of all seeds the measured share was below the bound."""
    pairs = [
        (value, run["precision_bound"][i])
        for run in runs.values()
        for i, value in run.get("precision", {}).items()
        if i in run.get("precision_bound", {})
    ]
    return f"{sum(value < bound for value, bound in pairs)} of {len(pairs)}"
