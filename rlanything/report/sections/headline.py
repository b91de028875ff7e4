"""The result in one sentence: how often the paper's full method, or the arm next to it, succeeds, and beyond what."""

from __future__ import annotations

from rlanything.config import BASE
from rlanything.report.formatting import code, interval, p_text
from rlanything.report.report_data import ReportData
from rlanything.report.results.comparison import Cell
from rlanything.report.results.metrics import Metric
from rlanything.report.results.questions import in_order


def headline(data: ReportData) -> str:
    """One sentence with its uncertainty; '' where no arm of the paper was compared with the base."""
    arms = [arm for arm in in_order(data.comparison.arms) if arm != BASE]
    if not arms or not data.comparison.success:
        return ""
    arm, metric = arms[-1], data.comparison.success[0]
    cell = data.cells[arm].get(metric.name)
    if cell is None or cell.vs_base is None:
        return ""
    reached = f"{code(arm)}: {data.contents.title(metric)} {interval(cell.value, metric)} percent"
    return f"**{reached}, {_against(cell, metric)}{_best(data, arm, metric)}.**"


def _against(cell: Cell, metric: Metric) -> str:
    """How it stands to the base."""
    doubt = "" if cell.vs_base is not None and cell.vs_base.clear else ", no clear difference"
    points = interval(cell.difference, metric, sign=True)
    return f"{points} points against the untrained base (p {p_text(cell.p)}{doubt})"


def _best(data: ReportData, arm: str, metric: Metric) -> str:
    """How it stands to the best of the other arms; '' where there is none. Its p is Holm's over all of them."""
    comparison = data.comparison
    others = [other for other in comparison.arms if other in data.config.arms and other != arm]
    means = {other: e.mean for other in others if (e := comparison.estimate(other, metric)) is not None}
    found = comparison.contrasts([(arm, other) for other in means], metric)
    if not found:
        return ""
    best = max((other for _, other in found), key=lambda other: means[other])
    doubt = "a clear difference" if found[arm, best].clear else "no clear difference"
    points = interval(found[arm, best].difference, metric, sign=True)
    return f"; against {code(best)}, the best of the other arms, {points} points ({doubt})"
