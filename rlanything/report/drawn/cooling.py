"""The chart of the search for the temperature at which the untrained policy is best."""

from __future__ import annotations

from functools import partial

from matplotlib.figure import Figure

from rlanything.config import BASE, BASE_COOLED
from rlanything.report.drawn.canvas import Chart, Row, empty
from rlanything.report.results.evaluations import Cooled
from rlanything.report.style import INK, looks

COOLING = "cooling"
"""Name of the figure of success against temperature."""


def cooling_chart(cooled: Cooled) -> Chart:
    """Success on the tasks of the search against the temperature; the one that was chosen is a large marker.

    One policy is searched once, before any training seed: there is one line, and no range over seeds.
    """
    shares = dict(sorted(cooled.shares.items()))
    rows: list[Row] = [
        ("search", BASE, "chosen" if t == cooled.temperature else "tried", t, share, None, None)
        for t, share in shares.items()
    ]
    return Chart(COOLING, rows, partial(_figure, shares, cooled.temperature))


def _figure(shares: dict[float, float], chosen: float) -> Figure:
    figure, (axis,) = empty(5.0, 3.4, 1)
    look = looks([BASE, BASE_COOLED])
    axis.set_title("Success in the search (%)")
    axis.set_xlabel("temperature")
    axis.plot(
        list(shares), [100.0 * share for share in shares.values()], look[BASE].line, color=look[BASE].colour,
        marker=look[BASE].marker, markersize=4,
    )  # fmt: skip
    best = shares.get(chosen)
    if best is not None:
        axis.plot(
            [chosen], [100.0 * best], ls="", marker=look[BASE_COOLED].marker, markersize=10,
            mfc="none", mec=INK,
        )  # fmt: skip
        axis.annotate(
            "chosen", (chosen, 100.0 * best), (0, 8), textcoords="offset points", ha="center",
            color=INK,
        )  # fmt: skip
        axis.margins(y=0.15)
    return figure
