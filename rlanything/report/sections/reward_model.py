"""The reward model: its curves, where the labels are from, each judge's view, and agreement."""

from __future__ import annotations

from rlanything.report import tables
from rlanything.report.formatting import code
from rlanything.report.report_data import ReportData
from rlanything.report.results.details import Judges
from rlanything.report.results.paper import Paper, Process
from rlanything.report.sections.judging import judging
from rlanything.report.sections.parts import bullets, images


def reward_model(data: ReportData) -> str:
    """The section."""
    labels = f" {_labels(data)}" if data.contents.acts else ""
    return f"## Reward model\n\n{images(data, 'reward')}{data.contents.reward}{labels}\n{_judges(data)}{judging(data)}"


def _labels(data: ReportData) -> str:
    """Where the labels of steps are from, and whose steps they are."""
    evaluate = data.config.evaluate
    first = evaluate.labellers[0]
    judge = evaluate.judges.get(first) if evaluate.labels == "judge" else None
    by = (
        "the environment's oracle"
        if judge is None
        else f"the majority of {judge.votes} votes of {code(first)}"
    )
    whose = (
        "the untrained policy's"
        if evaluate.reward_policy is None
        else f"{code(evaluate.reward_policy.path)}'s"
    )
    theirs = ", ".join(data.contents.paper.table_4)
    table_4 = (
        f" The paper's process accuracy is that of its Table 4, on steps of {theirs}."
        if theirs and evaluate.reward_policy is not None
        else ""
    )
    return f"The labels of steps are from {by}; the steps are {whose}.{table_4}"


def _judges(data: ReportData) -> str:
    """Process accuracy against the labels of each judge, where there are judges."""
    beside = _of_the_paper(data.contents.paper, data.config.evaluate.reward_policy is not None)
    return "".join(_judged(panel, judges, *beside) for panel, judges in data.extras.judged.items())


def _of_the_paper(paper: Paper, others: bool) -> tuple[str, Process]:
    """A sentence that says what stands below ours, and its lines. others: whether the steps are another policy's."""
    table = "Table 4" if others else "Table 3"
    lines = {f"{name}'s steps": of for name, of in paper.table_4.items()} if others else paper.table_3
    return (
        f" Paper: arXiv 2602.02488 v1, {table} ({', '.join(paper.benchmarks)}), plain." if lines else ""
    ), lines


def _judged(panel: str, judges: Judges, paper: str, theirs: Process) -> str:
    """The judges of one panel; '' is the only one."""
    counted = [
        f"{code(judge)}: {counts['labelled']:,} steps labelled; left out: "
        + ", ".join(f"{n:,} {why}" for why, n in counts.items() if why != "labelled")
        for judge, counts in judges.left_out.items()
    ]
    where = f" on {code(panel)}" if panel else ""
    return (
        f"\n### Process accuracy by judge{where}\n\nPercent, with 95 % intervals.{paper}\n\n"
        f"{tables.judges(judges.found, theirs)}{bullets(counted)}"
    )
