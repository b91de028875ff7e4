"""The figures of a sweep's page, as Plotly's data; report.md shows the same views as pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from rlanything.report.statistics import Estimate
from rlanything.report.words import plain
from rlanything.sweep.pictures import BLUE, COLOURS, GREY, PER_ROW, Places
from rlanything.sweep.views import Contour, Point, Views
from rlanything.sweep.words import number, scale


def words(text: object) -> str:
    """Text from outside as Plotly may show it: tags in it stay text."""
    return escape(plain(text, 60))


def _figure(data: list[dict[str, Any]], x: str, y: str, **layout: Any) -> dict[str, Any]:
    axes = {"xaxis": _axis(x), "yaxis": _axis(y)}
    given = {"margin": {"t": 20, "r": 20}, "showlegend": False, "hovermode": "closest"}
    return {"data": data, "layout": {**given, **axes, **layout}}


def _axis(title: str, **more: Any) -> dict[str, Any]:
    return {"title": {"text": words(title)}, "zeroline": False, **more}


def _trials(views: Views) -> dict[str, Any]:
    """The axis of trials: whole numbers only."""
    return _axis("trial", tick0=0, dtick=max(1, len(views.points) // 10))


def _values(key: str, values: Sequence[Any]) -> dict[str, Any]:
    """The axis of a key: logarithmic where its values are far apart, with few of them named."""
    if not Places(values).logarithmic:
        return _axis(key)
    named = {"tickvals": sorted(set(values))} if len(set(values)) <= 8 else {}
    return _axis(key, type="log", **named)


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
    data = [_dots(views, [p.number for p in views.finished]), leader]
    return _figure(data, "trial", views.objectives[0], xaxis=_trials(views))


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
        axes[f"xaxis{which}"] = _axis(views.objectives[0])
        axes[f"yaxis{which}"] = _axis(views.objectives[which])
    return _figure(data, views.objectives[0], views.objectives[1], **grid, **axes)


def _slices(views: Views) -> dict[str, Any] | None:
    keys = views.varied
    if not keys or not views.finished:
        return None
    data, axes = [], {}
    for i, key in enumerate(keys, 1):
        end = "" if i == 1 else str(i)
        values = [p.sets[key] for p in views.finished]
        shown = values if Places(values).numeric else [words(v) for v in values]
        data.append(_dots(views, shown, xaxis=f"x{end}", yaxis=f"y{end}"))
        axes[f"xaxis{end}"] = _values(key, values)
        axes[f"yaxis{end}"] = _axis(views.objectives[0] if i == 1 else "")
    rows = math.ceil(len(keys) / PER_ROW)
    grid = {"rows": rows, "columns": min(len(keys), PER_ROW), "pattern": "independent"}
    return _figure(data, keys[0], views.objectives[0], grid=grid, height=380 * rows, **axes)


def _contour(views: Views) -> dict[str, Any] | None:
    if not views.contours:
        return None
    data: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    for i, contour in enumerate(views.contours, 1):
        end = "" if i == 1 else str(i)
        data += [{**d, "xaxis": f"x{end}", "yaxis": f"y{end}"} for d in _surface(contour, views)]
        axes |= {f"xaxis{end}": _axis(contour.keys[0]), f"yaxis{end}": _axis(contour.keys[1])}
    grid = {"rows": 1, "columns": len(views.contours), "pattern": "independent"}
    bar = {"colorscale": "Viridis", "colorbar": {"title": {"text": words(views.objectives[0])}}}
    return _figure(data, "", "", grid=grid, coloraxis=bar, **axes)


def _surface(contour: Contour, views: Views) -> list[dict[str, Any]]:
    """The smooth surface, and a dot for every trial that it is made of."""
    (low, high), factor = contour.keys, scale(views.metrics[0])
    surface = [[None if v != v else factor * float(v) for v in row] for row in contour.surface]
    heat = {
        "type": "contour", "x": contour.x.tolist(), "y": contour.y.tolist(), "z": surface,
        "coloraxis": "coloraxis", "connectgaps": False, "hoverinfo": "skip",
    }  # fmt: skip
    dots = {
        "type": "scatter", "mode": "markers+text", "x": [p.sets[low] for p in contour.trials],
        "y": [p.sets[high] for p in contour.trials], "text": [str(p.number) for p in contour.trials],
        "textposition": "top right", "hovertext": [_hover(p, views) for p in contour.trials], "hoverinfo": "text",
        "marker": {"size": 10, "color": [_colour(p) for p in contour.trials], "line": {"color": "#fff", "width": 1}},
    }  # fmt: skip
    return [heat, dots]


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
    axes = {"xaxis": _trials(views), "xaxis2": _trials(views), "yaxis2": _axis("tasks inside the band (%)")}
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


PLOTS: dict[str, Callable[[Views], dict[str, Any] | None]] = {
    "history": _history, "front": _front, "slices": _slices, "contour": _contour,
    "importances": _importances, "adaptation": _adaptation, "fresh": _fresh,
}  # fmt: skip
"""Name -> what makes it; None where the sweep has nothing for it."""
