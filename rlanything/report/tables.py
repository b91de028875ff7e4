"""The table of arms beside the paper's: for the terminal (rich) and as Markdown, from the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from rlanything.config import BASE
from rlanything.report.contents import Contents
from rlanything.report.formatting import NONE, code, interval, markdown_table, number, p_text, plain
from rlanything.report.results.arms import ordered
from rlanything.report.results.comparison import Cell, Cells
from rlanything.report.results.curves import Peak, Peaks
from rlanything.report.results.equal_tokens import ArmAtTokens, EqualTokens
from rlanything.report.results.metrics import DECLARED, Metric
from rlanything.report.results.paper import ORDER, Paper
from rlanything.report.results.statistics import Estimate

PEAKS = 5
"""Metrics beside each other that fit a terminal of 80 characters."""
UNIT = "percent; [95 % interval]; differences in points"


def terminal(cells: Cells, contents: Contents) -> Table:
    """One block per metric, one line per arm; fits 80 columns."""
    shown = contents.paper.shown
    title = "Arms beside the paper" if shown else "Arms"
    table = _table(title, ("arm", "here", "vs base", *(("paper", "vs base") if shown else ())))
    table.caption = f"{UNIT}\npaper: {contents.paper.source}" if shown else UNIT
    for metric in contents.metrics:
        rows = list(_rows(cells, metric))
        if rows:
            table.add_row(Text(metric.short, style="bold"))
        for arm, found in rows:
            texts = _texts(arm, _columns(arm, metric, found, contents.paper))
            table.add_row(*texts, end_section=arm == rows[-1][0])
    return table


def terminal_peaks(peaks: Peaks, contents: Contents) -> Iterator[Table]:
    """The best point of each curve and its iteration, labelled for what it is; as many metrics a table as fit."""
    shares = _with_peaks(peaks, contents)
    for start in range(0, len(shares), PEAKS):
        yield _peaks(peaks, shares[start : start + PEAKS])


def _peaks(peaks: Peaks, shares: Sequence[Metric]) -> Table:
    table = _table("Peaks of the curves", ("arm", *(m.short for m in shares)))
    table.pad_edge = False  # five columns fit 80 characters without the margins
    table.caption = "highest point on the small curve panels @ iteration: optimistic, not the result"
    for arm, row in peaks.items():
        table.add_row(*_texts(arm, [_short_peak(row.get(m.name), m) for m in shares]))
    return table


def _with_peaks(peaks: Peaks, contents: Contents) -> list[Metric]:
    """The shares that have a curve in any arm; results of older versions lack some."""
    return [metric for metric in contents.shares if any(metric.name in row for row in peaks.values())]


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, title_style="bold", caption_justify="left")
    for i, name in enumerate(columns):
        table.add_column(name, justify="right" if i else "left", no_wrap=True)
    return table


def _texts(arm: str, row: Sequence[str]) -> list[Text]:
    """Cells that rich takes literally: an arm's name must not be read as markup."""
    return [Text(cell) for cell in (plain(arm, 16), *row)]


def _short_peak(found: Peak | None, metric: Metric) -> str:
    return NONE if found is None else f"{number(found.value, metric)} @ {found.iteration}"


def _rows(cells: Cells, metric: Metric) -> Iterator[tuple[str, Cell]]:
    return ((arm, row[metric.name]) for arm, row in cells.items() if metric.name in row)


def _columns(arm: str, metric: Metric, cell: Cell, paper: Paper) -> list[str]:
    """Ours, how far it is from the base, and the same of the paper where it has results."""
    against = NONE if arm == BASE else interval(cell.difference, metric, sign=True)
    ours = [interval(cell.value, metric), against]
    if not paper.shown:
        return ours
    theirs = NONE if arm == BASE else number(paper.gain(arm, metric), metric, sign=True)
    return [*ours, number(paper.value(arm, metric), metric), theirs]


def overview(cells: Cells, contents: Contents) -> str:
    """Markdown, the paper's layout: a line per arm; our mean and the paper's, where it has one, for each metric."""
    header = ["arm"]
    for metric in contents.metrics:
        header += [contents.title(metric), *(["paper"] if metric in contents.compared else [])]
    return markdown_table(header, [_overview_row(arm, row, contents) for arm, row in cells.items()])


def _overview_row(arm: str, row: Mapping[str, Cell], contents: Contents) -> list[str]:
    cells = [code(arm)]
    for metric in contents.metrics:
        mean = number(row[metric.name].value.mean, metric) if metric.name in row else NONE
        cells.append(f"**{mean}**" if metric.is_share else mean)
        if metric in contents.compared:
            cells.append(number(contents.paper.value(arm, metric), metric))
    return cells


def details(cells: Cells, metric: Metric, contents: Contents) -> str:
    """Markdown: every arm of one metric with intervals, the difference from the base and Holm's p."""
    header = [
        "arm",
        "here",
        "vs base",
        "p (Holm)",
        *(["paper", "paper vs base"] if contents.paper.shown else []),
    ]
    rows = []
    for arm, cell in _rows(cells, metric):
        here, against, *theirs = _columns(arm, metric, cell, contents.paper)
        rows.append([code(arm), here, against, p_text(cell.p), *theirs])
    return markdown_table(header, rows)


def between(cells: Cells, contents: Contents) -> str:
    """Markdown: what each part of the loop adds, a line per panel of the policy and pair of arms; '' without pairs."""
    rows = [
        [
            metric.short,
            f"{code(arm)} over {code(other)}",
            interval(c.difference, metric, sign=True),
            p_text(c.p),
        ]
        for metric in contents.metrics
        if metric.is_success
        for arm, cell in _rows(cells, metric)
        for other, c in cell.vs.items()
    ]
    return markdown_table(["panel", "contrast", "difference", "p (Holm)"], rows) if rows else ""


def benchmarks(cells: Cells, contents: Contents) -> str:
    """Markdown: a line per metric and arm of the paper, ours beside each of its benchmarks, with the difference."""
    paper = contents.paper
    rows = [
        [f"{contents.title(metric)} {code(arm)}", _ours(cells, arm, metric)]
        + [_theirs(paper, arm, metric, name) for name in paper.benchmarks]
        for metric in contents.compared
        for arm in ORDER
    ]
    return markdown_table(["metric, arm", "here", *paper.benchmarks], rows)


def by_benchmark(cells: Cells, contents: Contents) -> str:
    """Markdown, the paper's Table 1: a line per benchmark and arm; ours and the paper's of each kind of metric."""
    paper, shown = contents.paper, [metric for metric in contents.compared if metric.benchmark]
    kinds = {metric.kind: metric.general[contents.writes] for metric in shown}
    found = {(metric.benchmark, metric.kind): metric for metric in shown}
    rows = [
        [
            f"{name} {code(arm)}",
            *(text for kind in kinds for text in _pair(cells, arm, found.get((name, kind)), paper)),
        ]
        for name in dict.fromkeys(metric.benchmark for metric in shown)
        for arm in ORDER
    ]
    header = ["benchmark, arm", *(text for title in kinds.values() for text in (title, "paper"))]
    return markdown_table(header, rows)


def _pair(cells: Cells, arm: str, metric: Metric | None, paper: Paper) -> list[str]:
    """Ours and the paper's."""
    if metric is None:
        return [NONE, NONE]
    return [_ours(cells, arm, metric), _theirs(paper, arm, metric, metric.benchmark)]


def _ours(cells: Cells, arm: str, metric: Metric) -> str:
    cell = cells.get(arm, {}).get(metric.name)
    if cell is None:
        return NONE
    return _beside(cell.value.mean, None if cell.difference is None else cell.difference.mean, arm, metric)


def _theirs(paper: Paper, arm: str, metric: Metric, name: str) -> str:
    return _beside(paper.value(arm, metric, name), paper.gain(arm, metric, benchmark=name), arm, metric)


def _beside(value: float | None, gain: float | None, arm: str, metric: Metric) -> str:
    """`38.8 (+7.5)`; the base, and what nothing pairs with, has no difference."""
    shown = number(value, metric)
    return shown if arm == BASE or gain is None else f"{shown} ({number(gain, metric, sign=True)})"


def peak_table(peaks: Peaks, contents: Contents) -> str:
    """Markdown: the best and the last point of each curve on the small panel."""
    shares = _with_peaks(peaks, contents)
    header = ["arm", *(f"{contents.title(m)}: peak (iteration) / last" for m in shares)]
    rows = [[code(arm), *(_peak(row.get(m.name), m) for m in shares)] for arm, row in peaks.items()]
    return markdown_table(header, rows)


def _peak(found: Peak | None, metric: Metric) -> str:
    if found is None:
        return NONE
    return f"{number(found.value, metric)} ({found.iteration}) / {number(found.last, metric)}"


def token_table(found: EqualTokens, contents: Contents) -> str:
    """Markdown: each arm's tokens in all, and its curves at the tokens of the cheapest run and at the end."""
    metrics = [m for m in contents.shares if any(m.name in arm.at for arm in found.arms.values())]
    header = [
        "arm",
        "tokens a run",
        *(f"{contents.title(m)}: at {found.budget:,.0f} / at the end" for m in metrics),
    ]
    rows = [
        [code(arm), f"{row.tokens:,.0f}", *(_at_tokens(row, metric) for metric in metrics)]
        for arm, row in found.arms.items()
    ]
    return markdown_table(header, rows)


def _at_tokens(row: ArmAtTokens, metric: Metric) -> str:
    if metric.name not in row.at:
        return NONE
    return f"{number(row.at[metric.name], metric)} / {number(row.end[metric.name], metric)}"


def judges(
    judged: Mapping[str, Mapping[str, Mapping[str, Estimate]]], paper: Mapping[str, Sequence[float]]
) -> str:
    """Markdown: a line per judge and metric, a column per arm; below, the paper's plain values by name of the line."""
    arms = ordered({arm for row in judged.values() for arm in row})
    rows = [
        [code(judge), kind, *(interval(row.get(arm, {}).get(name), DECLARED[name]) for arm in arms)]
        for judge, row in judged.items()
        for name, kind in (("rm_process_plain", "plain"), ("rm_process", "balanced"))
    ]
    for name, values in paper.items():
        theirs = dict(zip(ORDER, values, strict=True))
        rows.append(
            [f"paper: {name}", "plain", *(number(theirs.get(a), DECLARED["rm_process"]) for a in arms)]
        )
    return markdown_table(["labels", "", *(code(arm) for arm in arms)], rows)
