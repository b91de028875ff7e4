"""A document with its figures as one page, and nothing beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable

import matplotlib as mpl

from rlanything.report.drawn.canvas import Chart
from rlanything.report.figures import rendered
from rlanything.report.page.page import framed
from rlanything.report.style import SETTINGS

_FIGURE = re.compile(r"\]\(figures/([\w.-]{1,80})\.png\)")
_SVG: dict[str, dict[str, None]] = {"svg": {"Date": None, "Creator": None}}


def page_of(title: str, text: str, charts: Iterable[Chart]) -> str:
    """The page of a document. charts: those that it may show; others are not drawn."""
    wanted = set(_FIGURE.findall(text))
    with mpl.rc_context(SETTINGS):
        files = {
            f"{chart.name}.{kind}": content
            for chart in charts
            if chart.name in wanted
            for kind, content in rendered(chart.figure, _SVG)
        }
    return framed(text, files, title, kinds=())
