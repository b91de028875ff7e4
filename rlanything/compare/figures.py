"""A document with its figures as one page, and nothing beside it; where such a page may be written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl

from rlanything.files.outputs import Output, output
from rlanything.report.drawn.canvas import Chart
from rlanything.report.figures import rendered
from rlanything.report.page.page import framed
from rlanything.report.style import SETTINGS

FIGURE = re.compile(r"!\[([^]]*)\]\(figures/([\w.-]{1,80})\.png\)\n\n")
"""A figure in a document: its caption and its name."""
COMPARISON, RUN = "Comparison", "Run"
"""How the titles of these pages begin."""
_STARTS = tuple(
    f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}'.encode()
    for title in (COMPARISON, RUN)
)
_SVG: dict[str, dict[str, None]] = {"svg": {"Date": None, "Creator": None}}


def page_of(title: str, text: str, charts: Iterable[Chart]) -> str:
    """The page of a document. charts: those that it may show; others are not drawn, and what has none is left out."""
    wanted = {name for _, name in FIGURE.findall(text)}
    with mpl.rc_context(SETTINGS):
        files = {
            f"{chart.name}.{kind}": content
            for chart in charts
            if chart.name in wanted
            for kind, content in rendered(chart.figure, _SVG)
        }
    text = FIGURE.sub(lambda one: one[0] if f"{one[2]}.svg" in files else "", text)
    return framed(text, files, title, kinds=())


def free(file: Path) -> Output:
    """The place of a page, for `output.write_text`. Raises `ConfigError` for one that holds something else."""
    return output(file, _problem)


def _problem(file: Path) -> str:
    if file.is_dir():
        return "is a folder, not a file"
    with file.open("rb") as opened:
        found = opened.read(max(map(len, _STARTS)))
    if found.startswith(_STARTS):
        return ""
    return "exists and is no page of a run or of a comparison; name another file"
