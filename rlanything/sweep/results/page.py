"""A sweep as one HTML page that needs no other file and no network: Plotly's script is part of it.

The figures are in the page as JSON. The look and the policy are those of all pages (`rlanything.pages`); Plotly sets
styles of elements, so those are allowed. Text from outside is escaped for HTML by the template, and for Plotly's texts
by `plotly_figures`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from markupsafe import Markup

from rlanything.core.printable import counted
from rlanything.pages import frame
from rlanything.sweep.results.document import FIGURES, about, crashes, sentences, trials
from rlanything.sweep.results.plotly_figures import PLOTS
from rlanything.sweep.results.views import Views
from rlanything.sweep.trials.board import Board

TEMPLATES = Path(__file__).with_name("templates")
TOP = "result"


def page_html(board: Board, name: str, views: Views) -> str:
    """The whole page; needs Plotly."""
    from plotly.offline import get_plotlyjs

    figures = {k: f for k, make in PLOTS.items() if (f := make(views)) is not None}
    sweep = board.sweep
    header, rows = trials(views, str)
    values = {
        "title": f"Sweep {name}",
        "start": TOP,
        "about": f"Arms {', '.join(sweep.arms)}; {counted(sweep.seeds, 'seed')} a trial; "
        f"sampler {sweep.sampler}. {about(sweep)}",
        "sentences": sentences(views),
        "figures": {k: FIGURES[k] for k in figures},
        "header": header,
        "rows": [(point.number == views.best, row) for point, row in zip(views.points, rows, strict=True)],
        "crashes": crashes(board),
        "data": _json(figures),
    }
    sections = [*(frame.Section(f"of-{k}", FIGURES[k]) for k in figures), frame.Section("trials", "Trials")]
    style, script = ((TEMPLATES / file).read_text(encoding="utf-8") for file in ("page.css", "page.js"))
    scripts = (get_plotlyjs(), script)
    return frame.page(
        values, sections, TEMPLATES / "page.html.jinja", style=style, scripts=scripts, inline=True
    )


def _json(figures: dict[str, Any]) -> Markup:
    """JSON in which no text can end the script element."""
    return Markup(json.dumps(figures, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c"))
