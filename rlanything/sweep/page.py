"""A sweep as one HTML page that needs nothing else: Plotly's script lies inside.

The figures lie in the page as data. A content policy lets the browser run the two scripts of the page, known by their
hashes, and load nothing. Words from outside are escaped twice: for HTML, and for Plotly, which reads tags in its texts.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from rlanything.report.statistics import Estimate
from rlanything.report.words import plain
from rlanything.sweep.board import Board
from rlanything.sweep.document import ABOUT, FIGURES, number, sentences
from rlanything.sweep.pictures import BLUE, COLOURS, GREY, Places
from rlanything.sweep.views import Point, Views, scale

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1b1b1b;background:#fff}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}table{border-collapse:collapse;width:100%;font-size:13px}
th,td{text-align:right;padding:.3rem .6rem .3rem 0;border-bottom:1px solid #ddd}
th:first-child,td:first-child{text-align:left}
.figure{min-height:380px}.quiet{color:#666}tr.best{background:#eef6ee}
"""
_SCRIPT = """
'use strict';
for (const [name, figure] of Object.entries(JSON.parse(document.getElementById('data').textContent))) {
  Plotly.newPlot(name, figure.data, figure.layout, {responsive: true, displaylogo: false});
}
"""


def html(board: Board, name: str, views: Views) -> str:
    """The whole page; needs Plotly."""
    from plotly.offline import get_plotlyjs

    plotly: str = get_plotlyjs()
    figures = {k: f for k, make in FIGURE.items() if (f := make(views)) is not None}
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; "
        f"script-src {_hash(plotly)} {_hash(_SCRIPT)}"
    )
    sections = "".join(f'<h2>{escape(FIGURES[k])}</h2><div class="figure" id="{k}"></div>\n' for k in figures)
    title = escape(f"Sweep {name}")
    sweep = board.sweep
    about = f"Arms {', '.join(sweep.arms)}; {sweep.seeds} seeds a trial; sampler {sweep.sampler}. {ABOUT}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{_STYLE}</style></head><body>\n'
        f'<h1>{title}</h1>\n<p class="quiet">{escape(about)}</p>\n'
        + "".join(f"<p>{escape(s)}</p>\n" for s in sentences(views))
        + sections
        + f"<h2>Trials</h2>\n{_table(views)}\n"
        + f'<script type="application/json" id="data">{_data(figures)}</script>\n'
        + f"<script>{plotly}</script>\n<script>{_SCRIPT}</script>\n</body></html>\n"
    )


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _data(figures: dict[str, Any]) -> str:
    """JSON in which no text can end the script element."""
    return json.dumps(figures, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")


def words(text: object) -> str:
    """Text from outside as Plotly may show it: tags in it stay text."""
    return escape(plain(text, 60))


def _table(views: Views) -> str:
    keys = views.keys
    head = ["trial", *keys, *views.objectives, "vs default", "accepted", "in band", "state"]
    rows = []
    for p in views.points:
        sets = [str(p.sets.get(k, "–")) for k in keys]
        found = [number(e, m) for e, m in zip(p.found, views.metrics, strict=False)] or ["–"] * len(
            views.metrics
        )
        against = (
            "–"
            if p.difference is None
            else number(p.difference.contrast.difference, views.metrics[0], signed=True)
        )
        accepted = "–" if p.accepted is None else f"{p.accepted.mean:.1f}"
        band = "–" if p.band_coverage is None else f"{100 * p.band_coverage:.0f} %"
        cells = "".join(
            f"<td>{escape(c)}</td>" for c in [p.name, *sets, *found, against, accepted, band, p.state]
        )
        rows.append(f'<tr class="best">{cells}</tr>' if p.number == views.best else f"<tr>{cells}</tr>")
    return f"<table><tr>{''.join(f'<th>{escape(h)}</th>' for h in head)}</tr>{''.join(rows)}</table>"


def _figure(data: list[dict[str, Any]], x: str, y: str, **layout: Any) -> dict[str, Any]:
    axes = {"xaxis": {"title": {"text": words(x)}}, "yaxis": {"title": {"text": words(y)}}}
    given = {"template": "none", "margin": {"t": 20, "r": 20}, "showlegend": False, "hovermode": "closest"}
    return {"data": data, "layout": {**given, **axes, **layout}}


def _error(found: Sequence[Estimate], factor: float) -> dict[str, Any]:
    """Plotly's lopsided error bars; none where there is no interval."""
    above = [0.0 if e.high is None else factor * (e.high - e.mean) for e in found]
    below = [0.0 if e.low is None else factor * (e.mean - e.low) for e in found]
    return {
        "type": "data",
        "symmetric": False,
        "array": above,
        "arrayminus": below,
        "thickness": 1.2,
        "color": GREY,
    }


def _dots(views: Views, x: Sequence[Any], which: int = 0, **more: Any) -> dict[str, Any]:
    """One dot a finished trial, with the interval of an objective upwards."""
    points, factor = views.finished, scale(views.metrics[which])
    found = [p.found[which] for p in points]
    return {
        "type": "scatter", "mode": "markers", "x": list(x), "y": [factor * e.mean for e in found],
        "error_y": _error(found, factor), "marker": {"size": 9, "color": [_colour(p) for p in points]},
        "text": [_hover(p, views) for p in points], "hoverinfo": "text", **more,
    }  # fmt: skip


def _colour(point: Point) -> str:
    return COLOURS.get(point.label, BLUE)


def _hover(point: Point, views: Views) -> str:
    lines = [f"trial {point.name}", *(f"{k} = {v}" for k, v in point.sets.items())]
    pairs = zip(views.objectives, point.found, views.metrics, strict=False)
    return "<br>".join(words(line) for line in [*lines, *(f"{n}: {number(e, m)}" for n, e, m in pairs)])


def _history(views: Views) -> dict[str, Any] | None:
    if not views.finished:
        return None
    line, factor = views.leader(), scale(views.metrics[0])
    leader = {
        "type": "scatter", "mode": "lines", "x": [n for n, _ in line], "y": [factor * v for _, v in line],
        "line": {"shape": "hv", "color": GREY}, "hoverinfo": "skip",
    }  # fmt: skip
    return _figure([_dots(views, [p.number for p in views.finished]), leader], "trial", views.objectives[0])


def _front(views: Views) -> dict[str, Any] | None:
    if len(views.objectives) < 2 or not views.finished:
        return None
    factor = scale(views.metrics[0])
    first = [p.found[0] for p in views.finished]
    data = []
    for which in range(1, len(views.objectives)):
        dots = _dots(views, [factor * e.mean for e in first], which, error_x=_error(first, factor))
        dots["marker"]["symbol"] = [
            "circle" if p.number in views.front else "circle-open" for p in views.finished
        ]
        end = "" if which == 1 else str(which)
        data.append({**dots, "xaxis": f"x{end}", "yaxis": f"y{end}"})
    grid = {"grid": {"rows": 1, "columns": len(data), "pattern": "independent"}}
    axes: dict[str, Any] = {}
    for which in range(2, len(views.objectives)):
        axes[f"xaxis{which}"] = {"title": {"text": words(views.objectives[0])}}
        axes[f"yaxis{which}"] = {"title": {"text": words(views.objectives[which])}}
    return _figure(data, views.objectives[0], views.objectives[1], **grid, **axes)


def _slices(views: Views) -> dict[str, Any] | None:
    keys = views.keys
    if not keys or not views.finished:
        return None
    data, axes = [], {}
    for i, key in enumerate(keys, 1):
        end = "" if i == 1 else str(i)
        values = [p.sets[key] for p in views.finished]
        shown = values if Places(values).numeric else [words(v) for v in values]
        data.append(_dots(views, shown, xaxis=f"x{end}", yaxis=f"y{end}"))
        axes[f"xaxis{end}"] = {"title": {"text": words(key)}}
    grid = {"rows": 1, "columns": len(keys), "pattern": "independent"}
    return (
        _figure(data, "", views.objectives[0], grid=grid, **axes)
        if len(keys) > 1
        else _figure(data, keys[0], views.objectives[0])
    )


def _contour(views: Views) -> dict[str, Any] | None:
    if not views.contours:
        return None
    contour, factor = views.contours[0], scale(views.metrics[0])
    low, high = contour.keys
    surface = [[None if v != v else factor * float(v) for v in row] for row in contour.surface]
    heat = {
        "type": "contour", "x": contour.x.tolist(), "y": contour.y.tolist(), "z": surface,
        "colorscale": "Viridis", "connectgaps": False, "hoverinfo": "skip",
        "colorbar": {"title": {"text": words(views.objectives[0])}},
    }  # fmt: skip
    dots = {
        "type": "scatter", "mode": "markers+text", "x": [p.sets[low] for p in views.finished],
        "y": [p.sets[high] for p in views.finished], "text": [str(p.number) for p in views.finished],
        "textposition": "top right", "hovertext": [_hover(p, views) for p in views.finished], "hoverinfo": "text",
        "marker": {"size": 10, "color": [_colour(p) for p in views.finished], "line": {"color": "#fff", "width": 1}},
    }  # fmt: skip
    return _figure([heat, dots], low, high)


def _importances(views: Views) -> dict[str, Any] | None:
    if not views.importances:
        return None
    found = list(views.importances.values())
    bars = {
        "type": "bar", "orientation": "h", "y": [words(n) for n in views.importances], "x": [e.mean for e in found],
        "error_x": _error(found, 1.0), "marker": {"color": BLUE},
    }  # fmt: skip
    return _figure([bars], "share (PED-ANOVA)", "", margin={"t": 20, "l": 180})


def _adaptation(views: Views) -> dict[str, Any] | None:
    points = [p for p in views.finished if p.accepted is not None and p.band_coverage is not None]
    if not points:
        return None
    accepted = [p.accepted for p in points if p.accepted is not None]
    numbers = [p.number for p in points]
    shared = {"type": "scatter", "mode": "markers", "x": numbers, "text": [_hover(p, views) for p in points]}
    marker = {"size": 9, "color": [_colour(p) for p in points]}
    left = {**shared, "y": [e.mean for e in accepted], "error_y": _error(accepted, 1.0), "marker": marker}
    right = {**shared, "y": [100 * (p.band_coverage or 0.0) for p in points], "marker": marker}
    grid = {"rows": 1, "columns": 2, "pattern": "independent"}
    axes = {
        "xaxis2": {"title": {"text": "trial"}},
        "yaxis2": {"title": {"text": "tasks inside the band (%)"}},
    }
    data = [left, {**right, "xaxis": "x2", "yaxis": "y2"}]
    return _figure(data, "trial", "accepted tasks, a seed", grid=grid, **axes)


def _fresh(views: Views) -> dict[str, Any] | None:
    if not views.fresh:
        return None
    factor = scale(views.metrics[0])
    rows = [
        (f"above {c.baseline}, {w}", e)
        for c in views.fresh
        for w, e in (("seeds that chose it", c.lead), ("fresh seeds", c.fresh))
    ]
    found = [e for _, e in rows]
    dots = {
        "type": "scatter", "mode": "markers", "x": [factor * e.mean for e in found], "y": [words(n) for n, _ in rows],
        "error_x": _error(found, factor), "marker": {"size": 9, "color": BLUE},
    }  # fmt: skip
    return _figure([dots], f"lead: {views.objectives[0]}", "", margin={"t": 20, "l": 260})


FIGURE: dict[str, Callable[[Views], dict[str, Any] | None]] = {
    "history": _history, "front": _front, "slices": _slices, "contour": _contour,
    "importances": _importances, "adaptation": _adaptation, "fresh": _fresh,
}  # fmt: skip
"""Name -> what makes it; None where the sweep has nothing for it."""
