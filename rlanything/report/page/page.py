"""report/index.html: the document in a frame with a table of contents, a style, and a policy that forbids the rest."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rlanything.core.look import COLOURS
from rlanything.core.printable import safe
from rlanything.report import document
from rlanything.report.figures import KINDS
from rlanything.report.page.markdown import html
from rlanything.report.report_data import ReportData

FOLDER = Path(__file__).with_name("templates")
FRAME, FIGURE, STYLE = "index.html.jinja", "figure.html.jinja", "report.css"


def page_html(data: ReportData, files: Mapping[str, bytes]) -> str:
    """The whole page; equal data give equal text. files: those that `figures.draw` has made, by name."""
    return framed(document.report_md(data), files)


def framed(text: str, files: Mapping[str, bytes]) -> str:
    """The page of a document. A character that cannot be seen is shown as its number."""
    templates = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )

    def figure(name: str, caption: str) -> str:
        svg = base64.b64encode(files[f"{name}.svg"]).decode()
        return templates.get_template(FIGURE).render(name=name, caption=caption, data=svg, kinds=KINDS)

    lines = (safe(line) for line in text.split("\n"))
    body, headings = html("\n".join(lines), figure)
    style = COLOURS + (FOLDER / STYLE).read_text(encoding="utf-8")
    values = {"title": "Report", "headings": headings, "body": body}
    return templates.get_template(FRAME).render(values, style=Markup(style), style_hash=_digest(style))


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
