"""Whether the reward model's votes agree with labels, with each other, and with what came of the episodes."""

from __future__ import annotations

from collections.abc import Iterator

from rlanything.report.drawn.judging import CALIBRATION, by_level
from rlanything.report.formatting import NONE, code, interval, markdown_table
from rlanything.report.report_data import ReportData
from rlanything.report.results.agreement import Agreement, agreement
from rlanything.report.results.curves import RECENT
from rlanything.report.results.metrics import DECLARED, Metric
from rlanything.report.results.votes import LEVELS
from rlanything.report.sections.parts import FIRST_AND_LAST, from_to, image, percent

BALANCED = "rm_process"
"""The metric whose results tell good steps from bad ones."""


def judging(data: ReportData) -> str:
    """Two subsections; '' where nobody votes on steps."""
    return _agreement(data) + _among_votes(data) + _calibration(data) if data.contents.acts else ""


def _agreement(data: ReportData) -> str:
    metrics = [metric for metric in data.contents.metrics if metric.kind == BALANCED]
    rows = [row for metric in metrics for row in _rows(data, metric)]
    if not rows:
        return ""
    header = ["arm", "good steps judged good", "bad steps judged bad", "Cohen's kappa", "labelled steps"]
    return (
        "\n### Agreement with the labels\n\nFinal reward models on steps that never change, percent with 95 % "
        "intervals. Kappa is the agreement beyond chance: 1 is full agreement, 0 none; mean and range over seeds.\n\n"
        + markdown_table(header, rows)
    )


def _rows(data: ReportData, metric: Metric) -> Iterator[list[str]]:
    where = f", {metric.panel}" if metric.panel else ""
    for arm in data.comparison.arms:
        panel = data.comparison.panels[arm].get(metric.name)
        found = None if panel is None else agreement(panel)
        if found is not None:
            shares = [interval(share, DECLARED[BALANCED]) for share in (found.good, found.bad)]
            yield [f"{code(arm)}{where}", *shares, _kappa(found), f"{found.steps:,}"]


def _kappa(found: Agreement) -> str:
    mean = sum(found.kappa) / len(found.kappa)
    return f"{mean:.2f} ({min(found.kappa):.2f} to {max(found.kappa):.2f})"


def _among_votes(data: ReportData) -> str:
    rows = [
        [code(arm), from_to(runs, "unanimous", percent), from_to(runs, "invalid_votes", percent)]
        for arm, runs in data.curves.items()
        if any(run.get("unanimous") for run in runs.values())
    ]
    if not rows:
        return ""
    return (
        "\n### Agreement of the votes with each other\n\nWhile training, percent. Steps with unanimous votes do not "
        f"train the reward model. {FIRST_AND_LAST}\n\n"
        + markdown_table(["arm", "steps with unanimous votes", "votes without a verdict"], rows)
    )


def _calibration(data: ReportData) -> str:
    head = f"\n### Votes and success\n\n{image('Success by share of good votes', CALIBRATION)}"
    if not data.votes:
        return f"{head}No rollouts with votes are stored, so this is not shown.\n"
    header = ["arm, iterations", *LEVELS]
    rows = [
        [f"{code(arm)}, {when} {RECENT}", *_levels(data, arm, end)]
        for arm in data.votes
        for end, when in (("start", "first"), ("end", "last"))
    ]
    return (
        f"{head}Percent of the steps whose episode succeeds, by how many of the votes on the step are good, in "
        "brackets the number of steps. All seeds together, rewrites included. A good step of a failed episode is no "
        "error of the vote: the columns need not be 0 and 100, but they should rise.\n\n"
        + markdown_table(header, rows)
    )


def _levels(data: ReportData, arm: str, end: str) -> list[str]:
    return [
        f"{percent(level.right / level.steps)} ({level.steps:,})" if level.steps else NONE
        for _, level in by_level(data.votes, arm, end)
    ]
