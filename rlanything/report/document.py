"""report/report.md: the table, what it says in sentences, figures, warnings, settings, and how to read it.

Text from outside (arm names, settings) stands in code spans only; see `formatting.code`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import quote

from rlanything.config.sources import SETTINGS, setting_of
from rlanything.report import configuration, findings, health, tables
from rlanything.report.buffers import buffer_run, file_name
from rlanything.report.caveats import caveats
from rlanything.report.formatting import SETTINGS_FOLD, code, markdown_table, plain
from rlanything.report.report_data import ReportData
from rlanything.report.results.details import Judges
from rlanything.report.results.paper import OTHER_STEPS, TABLE_3, TABLE_4
from rlanything.report.sections.cost import cost
from rlanything.report.sections.hacking import hacking
from rlanything.report.sections.headline import headline
from rlanything.report.sections.judging import judging
from rlanything.report.sections.limits import limits
from rlanything.report.sections.parts import bullets, images, titled
from rlanything.report.sections.provenance import provenance
from rlanything.report.sections.temperature import temperature
from rlanything.report.sections.theory import theory


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
    blocks = [f"### {contents.title(m)}\n\n{tables.details(cells, m, contents)}" for m in present]
    return (
        "## Result\n\n"
        "Percent, final checkpoint, mean over seeds and tasks. "
        f"Paper: {contents.paper.source}; {contents.paper.lacks}.\n\n"
        f"{tables.overview(cells, contents)}\n"
        "![Differences from the base (paper: Fig. 1.3)](figures/gains.png)\n\n"
        "With 95 % intervals; differences are in points and paired by seed and task; p-values are two-sided and "
        "corrected by Holm's method over the arms of one metric.\n\n" + "\n".join(blocks + _benchmarks(data))
    )


def _benchmarks(data: ReportData) -> list[str]:
    """The paper's whole table, where more than one of its benchmarks is shown."""
    cells, contents = data.cells, data.contents
    if len(contents.paper.benchmarks) == 1:
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


def _learning(data: ReportData) -> str:
    body = f"## Learning curves\n\n{images(data, 'learning')}{READING_A_CURVE}\n{_steps(data)}"
    if not data.peaks:
        return body
    return (
        f"{body}\nPeak and last point of each curve, on the small panels. A peak is picked *because* it is high, so it "
        "is optimistic; it is no result. The result is the table above.\n\n"
        + tables.peak_table(data.peaks, data.contents)
        + bullets(findings.declines(data.peaks, data.contents))
    )


def _steps(data: ReportData) -> str:
    """The figure of success against steps, where an episode has many."""
    if not data.contents.acts:
        return ""
    return (
        "\n![Success against the number of steps (paper: Fig. 6b)](figures/steps.png)\n\n"
        "Final checkpoints: the share of the games that are solved within so many steps. The policy is not told the "
        "limit, so that one evaluation gives the whole curve.\n"
    )


READING_A_CURVE = (
    "Lines: mean over seeds on the small curve panel; bands: lowest to highest seed. Markers at the right edge: final "
    "checkpoint on the full panel with its 95 % interval; dashed line: the base on the full panel."
)


def _reward(data: ReportData) -> str:
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
    table_4 = (
        ""
        if evaluate.reward_policy is None
        else f" The paper's process accuracy is that of its Table 4, on steps of {OTHER_STEPS}."
    )
    return f"The labels of steps are from {by}; the steps are {whose}.{table_4}"


def _judges(data: ReportData) -> str:
    """Process accuracy against the labels of each judge, where there are judges."""
    others = data.config.evaluate.reward_policy is not None
    return "".join(_judged(panel, judges, others) for panel, judges in data.extras.judged.items())


def _judged(panel: str, judges: Judges, others: bool) -> str:
    """The judges of one panel; '' is the only one. others: whether the steps are another policy's."""
    table, theirs = (
        ("Table 4", {f"{OTHER_STEPS}'s steps": TABLE_4[OTHER_STEPS]}) if others else ("Table 3", TABLE_3)
    )
    counted = [
        f"{code(judge)}: {counts['labelled']:,} steps labelled; left out: "
        + ", ".join(f"{n:,} {why}" for why, n in counts.items() if why != "labelled")
        for judge, counts in judges.left_out.items()
    ]
    where = f" on {code(panel)}" if panel else ""
    return (
        f"\n### Process accuracy by judge{where}\n\nPercent, with 95 % intervals. Paper: arXiv 2602.02488 v1, {table} "
        f"(ALFWorld), plain.\n\n{tables.judges(judges.found, theirs)}{bullets(counted)}"
    )


def _solved(data: ReportData) -> str:
    """Whether the accepted tasks can be solved, arm by arm."""
    evaluate = data.config.evaluate
    solver = "the environment's expert" if evaluate.solver is None else code(evaluate.solver.path)
    lines = [
        f"{code(arm)}: {solver} solves {found.solved} of {found.tasks} accepted tasks in at most "
        f"{evaluate.solver_tries} tries ({100 * found.solved / found.tasks:.1f} %)."
        + (f" Left out: {found.untried} that it could not try." if found.untried else "")
        for arm, found in data.extras.solved.items()
    ]
    return bullets([*lines, PAPER_SOLVED]) if lines else ""


def _pages(data: ReportData) -> str:
    """The pages of the changed buffers."""
    links = ", ".join(f"[{code(run)}](buffers/{quote(file_name(run))})" for run in data.changed)
    return f" As pages: {links}." if links else ""


PAPER_SOLVED = (
    "Paper (Fig. 7a): a stronger policy solves 96.0, 96.7 and 94.2 % of its accepted tasks in at least one of 16 "
    "tries."
)


def _tasks(data: ReportData) -> str:
    folder = buffer_run(data.config, data.curves)
    where = f"The task buffer of this run is in {code(folder)}; show it with {code(f'rlanything buffer ls {folder}')}."
    return (
        f"## Tasks\n\n{images(data, 'tasks')}"
        f"What each run changed, first buffer against last, is in [buffers.md](buffers.md).{_pages(data)}\n\n"
        f"{where if folder else 'No arm that adapts its tasks was run, so there is no changed buffer to show.'}\n"
        + _solved(data)
    )


def _health(data: ReportData) -> str:
    lines = health.lines(data.curves)
    clean = "\nNo warnings.\n" if data.curves else "\nNo metrics to check.\n"
    return "## Health\n" + (bullets(lines) or clean)


def _settings(data: ReportData) -> str:
    rows = configuration.rows(data.config)
    differing = [
        [code(row.name), code(row.value), code(row.reference), plain(row.place)]
        for row in rows
        if row.differs
    ]
    every = [[code(row.name), code(row.value), plain(row.source)] for row in rows]
    experiment = f"the paper's {SETTINGS[setting_of(data.config)]} experiment"
    return (
        "## Settings\n\n"
        f"{len(differing)} settings differ from {experiment}: from the paper's value, or, where it has none, from that "
        f"of its reference code. {PLACES}\n\n"
        f"{markdown_table(['setting', 'here', 'paper or reference code', 'source'], differing)}\n"
        f"{SETTINGS_FOLD}\n\n"
        f"{markdown_table(['setting', 'value', 'source'], every)}\n</details>\n"
    )


PLACES = (
    "Places: of arXiv 2602.02488 v1; files of the reference code, Gen-Verse/Open-AgentRL at commit 1fe5dbd."
)


def _reading(data: ReportData) -> str:
    return "## How to read this\n" + bullets([*READING, data.contents.paper.note, NUMBERS])


READING = (
    "An interval is for the mean over *new training seeds and new tasks made the same way*: seeds and tasks are "
    "crossed random effects, with Student's t. How often it holds the truth: `python -m benchmarks.interval_coverage`.",
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
    _head, _result, _statements, limits, _learning, _reward, theory, hacking, _tasks, temperature, cost, _health,
    _settings, provenance, _reading,
)  # fmt: skip
"""In the order of the document; one that has nothing to say is left out."""
