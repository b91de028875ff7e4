"""report/index.html: the document, with its figures inside, in the frame of all pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlanything.core.printable import safe
from rlanything.pages import frame
from rlanything.report import document
from rlanything.report.figures import KINDS
from rlanything.report.page.markdown import html
from rlanything.report.report_data import ReportData


def page_html(data: ReportData, files: Mapping[str, bytes]) -> str:
    """The whole page; equal data give equal text. files: those that `figures.draw` has made, by name."""
    return framed(document.report_md(data), files)


def framed(text: str, files: Mapping[str, bytes], title: str = "Report", kinds: Sequence[str] = KINDS) -> str:
    """The page of a document. A character that cannot be seen is shown as its number.

    kinds: the files of each figure that lie beside the page; none: the page is alone.
    """

    def figure(name: str, caption: str) -> str:
        return frame.figure(name, caption, files[f"{name}.svg"], kinds)

    lines = (safe(line) for line in text.split("\n"))
    body, top, sections = html("\n".join(lines), figure)
    return frame.page({"title": title, "start": top, "body": body}, sections)
