"""The page of one run, or of the runs of one arm: the report's sections, with what concerns a single run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rlanything.compare.figures import RUN, folder_of, page_of
from rlanything.compare.run.parts import beside, made_from, not_concluded, tasks, troubles
from rlanything.compare.run.single import Single
from rlanything.compare.run.times import times
from rlanything.config import BASE
from rlanything.report.figures import charts
from rlanything.report.formatting import NONE, code, interval, markdown_table, number, p_text, plain
from rlanything.report.report_data import ReportData
from rlanything.report.results.comparison import Cell
from rlanything.report.results.curves import RECENT, ends
from rlanything.report.results.metrics import Metric
from rlanything.report.results.statistics import Contrast, corrected
from rlanything.report.sections.cost import cost
from rlanything.report.sections.hacking import hacking
from rlanything.report.sections.learning import learning
from rlanything.report.sections.parts import bullets, percent
from rlanything.report.sections.reward_model import reward_model
from rlanything.report.sections.settings import settings, warned
from rlanything.report.sections.temperature import temperature
from rlanything.report.sections.theory import theory


def single_page(found: Single) -> str:
    """The whole page; equal runs with equal times give equal text."""
    return page_of(f"{RUN} {plain(found.name)}", single_md(found), charts(found.data))


def single_files(found: Single) -> dict[str, bytes]:
    """The page and its figures as files of a folder."""
    return folder_of(f"{RUN} {plain(found.name)}", single_md(found), charts(found.data))


def single_md(found: Single) -> str:
    """The document, as Markdown."""
    return "\n".join(text for section in SECTIONS if (text := section(found)))


def headline(found: Single) -> str:
    """The result in one sentence, with its uncertainty."""
    success = found.data.comparison.success
    cell = found.data.cells.get(found.arm, {}).get(success[0].name) if success else None
    if cell is None:
        return _while_training(found)
    metric, against = success[0], _contrasts(found).get(success[0].name)
    text = f"{code(found.name)}: {found.data.contents.title(metric)} {interval(cell.value, metric)} percent"
    if against is None:
        return f"{text}; the untrained base was not measured with it."
    doubt = "" if against.clear else ", no clear difference"
    points = interval(against.difference, metric, sign=True)
    return f"{text}, {points} points against the untrained base (p {p_text(against.p)}{doubt})."


def _contrasts(found: Single) -> dict[str, Contrast]:
    """Name of a metric -> the run against the base, with Holm's p over all metrics."""
    row = found.data.cells.get(found.arm, {})
    return corrected({name: cell.vs_base for name, cell in row.items() if cell.vs_base is not None})


def _while_training(found: Single) -> str:
    """What is known without an evaluation: how often the tasks of its training were solved."""
    known = ends(found.data.curves[found.arm], "accuracy")
    if known is None:
        return f"{code(found.name)}: no iteration is published yet."
    return (
        f"{code(found.name)} solved {percent(known[0])} % of the episodes of its first {RECENT} iterations and "
        f"{percent(known[1])} % of those of its last {RECENT}; the tasks change between them, and no final checkpoint "
        "was measured."
    )


def _head(found: Single) -> str:
    config, seeds = found.data.config, ", ".join(map(str, found.seeds))
    state = [] if found.finished else [f"In training: {_published(found)}."]
    if found.finished and not found.evaluated:
        state.append(
            "The final checkpoints were not measured (`rlanything evaluate`), so the curves are all there is."
        )
    return (
        f"# {RUN} {code(found.name)}\n\n**{headline(found)}**\n\n"
        f"Arm {code(found.arm)}, seed {seeds}. Scale {code(config.scale)}, environment {code(config.env['_target_'])}, "
        f"{config.train.iterations} iterations of {config.rollout.tasks} tasks x {config.rollout.rollouts} rollouts.\n"
        + bullets(state)
    )


def _published(found: Single) -> str:
    return f"{found.iterations} of {found.data.config.train.iterations} iterations are published and shown"


def _result(found: Single) -> str:
    if not found.evaluated:
        return ""
    seeds = (
        "tasks; with one seed they say nothing about another training"
        if len(found.seeds) == 1
        else "seeds and tasks"
    )
    return (
        "## Result\n\nPercent, final checkpoint. Differences are in points and paired by seed and task; p is two-sided "
        f"and corrected by Holm's method over the rows. The 95 % intervals are over {seeds}. The base was measured "
        "with the same draws.\n\n" + _table(found)
    )


def _table(found: Single) -> str:
    """A line for each metric; beside it the paper's, where it has the arm."""
    data, rows, theirs = found.data, [], []
    for metric in data.contents.metrics:
        cell, base = (data.cells.get(arm, {}).get(metric.name) for arm in (found.arm, BASE))
        if cell is not None:
            rows.append([data.contents.title(metric), *_values(found, metric, cell, base)])
            theirs.append(_paper(found, metric))
    header = ["metric", "base", "this run", "difference", "p (Holm)"]
    if not any(value != NONE for value, _ in theirs):
        return markdown_table(header, rows)
    both = [[*row, *paper] for row, paper in zip(rows, theirs, strict=True)]
    return markdown_table([*header, "paper", "paper vs base"], both) + beside(data.contents.paper)


def _values(found: Single, metric: Metric, cell: Cell, base: Cell | None) -> list[str]:
    """The cells of the base, the run, and their difference with its p."""
    against = _contrasts(found).get(metric.name)
    points = NONE if against is None else interval(against.difference, metric, sign=True)
    values = [interval(None if of is None else of.value, metric) for of in (base, cell)]
    return [*values, points, p_text(against.p if against else None)]


def _paper(found: Single, metric: Metric) -> tuple[str, str]:
    """The paper's value of the arm, and its difference from the base."""
    paper = found.data.contents.paper
    gain = paper.gain(found.arm, metric)
    return number(paper.value(found.arm, metric), metric), number(gain, metric, sign=True)


def _of(section: Callable[[ReportData], str]) -> Callable[[Single], str]:
    """A section of the report, for a run."""
    return lambda found: section(found.data)


def _health(found: Single) -> str:
    return f"{warned(found.data)}\n{troubles(found)}"


SECTIONS: Sequence[Callable[[Single], str]] = (
    _head, _result, not_concluded, _of(learning), _of(reward_model), _of(theory), _of(hacking), tasks,
    _of(temperature), _of(cost), times, _health, _of(settings), made_from,
)  # fmt: skip
"""In the order of the page; one that has nothing to say is left out."""
