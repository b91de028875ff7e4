"""A sweep as one HTML page that needs no other file and no network: Plotly's script is part of it.

The figures are in the page as JSON. A content policy lets the browser run the page's two scripts, known by their
hashes, and load nothing. Text from outside is escaped for HTML by the template, and for Plotly's texts by
`plotly_figures`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rlanything.sweep.results.document import ABOUT, FIGURES, crashes, sentences, trials
from rlanything.sweep.results.plotly_figures import PLOTS
from rlanything.sweep.results.views import Views
from rlanything.sweep.trials.board import Board

TEMPLATE = "page.html.jinja"
SCRIPT = """
'use strict';
const dark = matchMedia('(prefers-color-scheme: dark)').matches;
const [ink, line] = dark ? ['#e6e6e6', '#3a3a3a'] : ['#1b1b1b', '#e6e6e6'];
const axis = {gridcolor: line, linecolor: line};
const look = {
  paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', font: {color: ink},
  template: {layout: {xaxis: axis, yaxis: axis}},
};
function below(layout) {  // where there is little room, panels stand below each other
  if (innerWidth >= 700 || !layout.grid) return {};
  const panels = Object.keys(layout).filter(key => key.startsWith('xaxis')).length;
  return {grid: {...layout.grid, rows: panels, columns: 1}, height: 330 * panels};
}
for (const [name, {data, layout}] of Object.entries(JSON.parse(document.getElementById('data').textContent))) {
  Plotly.newPlot(name, data, {...layout, ...look, ...below(layout)}, {responsive: true, displaylogo: false});
}
"""


def page_html(board: Board, name: str, views: Views) -> str:
    """The whole page; needs Plotly."""
    from plotly.offline import get_plotlyjs

    plotly: str = get_plotlyjs()
    figures = {k: f for k, make in PLOTS.items() if (f := make(views)) is not None}
    sweep = board.sweep
    header, rows = trials(views, str)
    return _template().render(
        title=f"Sweep {name}",
        about=f"Arms {', '.join(sweep.arms)}; {sweep.seeds} seeds a trial; sampler {sweep.sampler}. {ABOUT}",
        sentences=sentences(views),
        figures={k: FIGURES[k] for k in figures},
        header=header,
        rows=[(point.number == views.best, row) for point, row in zip(views.points, rows, strict=True)],
        crashes=crashes(board),
        policy=Markup(
            f"default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; "
            f"script-src {_hash(plotly)} {_hash(SCRIPT)}"
        ),
        data=_json(figures),
        plotly=Markup(plotly),
        script=Markup(SCRIPT),
    )  # fmt: skip


def _template() -> Any:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    return environment.get_template(TEMPLATE)


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _json(figures: dict[str, Any]) -> Markup:
    """JSON in which no text can end the script element."""
    return Markup(json.dumps(figures, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c"))
