"""A sweep as one HTML page that needs nothing else: Plotly's script lies inside.

The figures lie in the page as data. A content policy lets the browser run the two scripts of the page, known by their
hashes, and load nothing. Words from outside are escaped twice: for HTML, and for Plotly, which reads tags in its texts.
"""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from typing import Any

from rlanything.sweep.board import Board
from rlanything.sweep.document import ABOUT, FIGURES, crashes, sentences, trials
from rlanything.sweep.plots import PLOTS
from rlanything.sweep.views import Views

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
    figures = {k: f for k, make in PLOTS.items() if (f := make(views)) is not None}
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
        + "".join(f"<p>Crashed: {escape(who)}: {escape(error)}</p>\n" for who, error in crashes(board))
        + f'<script type="application/json" id="data">{_data(figures)}</script>\n'
        + f"<script>{plotly}</script>\n<script>{_SCRIPT}</script>\n</body></html>\n"
    )


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _data(figures: dict[str, Any]) -> str:
    """JSON in which no text can end the script element."""
    return json.dumps(figures, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")


def _table(views: Views) -> str:
    head, rows = trials(views, str)
    lines = ["<tr>" + "".join(f"<th>{escape(h)}</th>" for h in head) + "</tr>"]
    for point, row in zip(views.points, rows, strict=True):
        mark = ' class="best"' if point.number == views.best else ""
        lines.append(f"<tr{mark}>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>")
    return f"<table>{''.join(lines)}</table>"
