"""report/report.md: the table, what it says in sentences, figures, warnings, settings, and how to read it.

Text from outside (arm names, settings) stands in code spans only; see `formatting.code`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import quote

from rlanything.report import findings, tables
from rlanything.report.buffers import buffer_run, file_name
from rlanything.report.caveats import caveats
from rlanything.report.formatting import code
from rlanything.report.report_data import ReportData
from rlanything.report.results.paper import Paper
from rlanything.report.sections.cost import cost
from rlanything.report.sections.hacking import hacking
from rlanything.report.sections.headline import headline
from rlanything.report.sections.learning import learning
from rlanything.report.sections.limits import limits
from rlanything.report.sections.mismatch import mismatch
from rlanything.report.sections.parts import bullets, images, titled
from rlanything.report.sections.provenance import provenance
from rlanything.report.sections.reward_model import reward_model
from rlanything.report.sections.settings import settings, warned
from rlanything.report.sections.solved import solved
from rlanything.report.sections.temperature import temperature
from rlanything.report.sections.theory import theory
from rlanything.report.sections.updates import updates


def report_md(data: ReportData) -> str:
    """The whole document. Equal data give equal text."""
    return "\n".join(text for section in SECTIONS if (text := section(data)))


def _head(data: ReportData) -> str:
    config = data.config
    seeds = ", ".join(
        f"{code(arm)} {', '.join(map(str, data.comparison.seeds(arm)))}" for arm in data.comparison.arms
    )
    return (
        f"# Report\n\n{headline(data)}\n\n"
        f"Scale {code(config.scale)}, environment {code(config.env['_target_'])}, {config.train.iterations} iterations "
        f"of {config.rollout.tasks} tasks x {config.rollout.rollouts} rollouts. Seeds: {seeds}.\n"
        + bullets(caveats(data))
    )


def _result(data: ReportData) -> str:
    cells, contents = data.cells, data.contents
    present = [m for m in contents.metrics if any(m.name in row for row in cells.values())]
    parts = tables.between(cells, contents)
    worse = bullets(findings.worse_control(data.comparison))
    between = [f"### What each part adds\n\n{BETWEEN}\n\n{parts}{worse}"] if parts else []
    blocks = [f"### {contents.title(m)}\n\n{tables.details(cells, m, contents)}" for m in present]
    return (
        "## Result\n\n"
        "Percent, final checkpoint, mean over seeds and tasks. "
        f"{_beside(contents.paper)}\n\n"
        f"{tables.overview(cells, contents)}\n"
        "![Differences from the base (paper: Fig. 1.3)](figures/gains.png)\n\n"
        "With 95 % intervals; differences are in points and paired by seed and task; p-values are two-sided and "
        "corrected by Holm's method over the arms of one metric.\n\n"
        + "\n".join(between + blocks + _benchmarks(data))
    )


def _beside(paper: Paper) -> str:
    """What of the paper stands beside our results."""
    if not paper.shown:
        return "The paper has no results on such tasks."
    return f"Paper: {paper.source}; {paper.lacks}."


BETWEEN = (
    "Points by which an arm solves more than another one. p is Holm's over the question: all arms over the cooled "
    "base, all arms with more than outcomes over `outcome`, all steps of the paper's order."
)


def _benchmarks(data: ReportData) -> list[str]:
    """The paper's whole table, where more than one of its benchmarks is shown."""
    cells, contents = data.cells, data.contents
    if len(contents.paper.benchmarks) < 2:
        return []
    head = "### Every benchmark of the paper\n\nPercent, in brackets the difference from the base. "
    if any(metric.benchmark for metric in contents.metrics):
        return [f"{head}The models are others.\n\n{tables.by_benchmark(cells, contents)}"]
    return [
        f"{head}Problems differ from column to column: compare the "
        f"order of the arms and the differences, not the levels.\n\n{tables.benchmarks(cells, contents)}"
    ]


def _statements(data: ReportData) -> str:
    comparison, contents = data.comparison, data.contents
    return (
        "## What the numbers say\n"
        + bullets(findings.against_base(comparison, contents.paper))
        + titled(
            "Beyond `outcome`, which learns from outcomes alone:",
            findings.against_outcome(comparison, contents.paper),
        )
        + titled("Step by step, in the paper's order of arms:", findings.ladder(comparison, contents.paper))
        + titled("Is it the paper's order?", findings.order(comparison, contents))
    )


def _pages(data: ReportData) -> str:
    """The pages of the changed buffers."""
    links = ", ".join(f"[{code(run)}](buffers/{quote(file_name(run))})" for run in data.changed)
    return f" As pages: {links}." if links else ""


def _tasks(data: ReportData) -> str:
    folder = buffer_run(data.config, data.curves)
    where = f"The task buffer of this run is in {code(folder)}; show it with {code(f'rlanything buffer ls {folder}')}."
    return (
        f"## Tasks\n\n{images(data, 'tasks')}"
        f"What each run changed, first buffer against last, is in [buffers.md](buffers.md).{_pages(data)}\n\n"
        f"{where if folder else 'No arm that adapts its tasks was run, so there is no changed buffer to show.'}\n"
        + solved(data)
    )


def _reading(data: ReportData) -> str:
    return "## How to read this\n" + bullets(
        list(filter(None, [*READING, data.contents.paper.note, NUMBERS]))
    )


READING = (
    "An interval is for the mean over *new training seeds and new tasks made the same way*, with the same base models "
    "and training tasks: seeds and tasks are crossed random effects, with Student's t. "
    "How often it holds the truth: `python -m benchmarks.interval_coverage`.",
    "A difference is called clear when its p-value is below .05 after Holm's correction over all the differences of "
    "its list. One that is not clear may be chance. It is then not evidence that two arms are equal.",
    "The base is the same frozen checkpoint in every seed, measured with each seed's evaluation randomness.",
)
NUMBERS = (
    "The same numbers for programs: [summary.json](summary.json), [plots/learning.csv](plots/learning.csv); figures "
    "also as SVG and PDF, with their numbers as CSV, in `figures/`. The whole report as one page for a browser or for "
    "print: [index.html](index.html)."
)


SECTIONS: Sequence[Callable[[ReportData], str]] = (
    _head, _result, _statements, limits, learning, reward_model, theory, hacking, updates, mismatch, _tasks,
    temperature, cost, warned, settings, provenance, _reading,
)  # fmt: skip
"""In the order of the document; one that has nothing to say is left out."""
