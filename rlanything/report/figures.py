"""The report's figures as files: PNG, SVG, PDF for papers, CSV with the numbers; equal numbers give equal bytes."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator

import matplotlib as mpl
from matplotlib.figure import Figure

from rlanything.report.drawn.arms import gains_chart, steps_chart
from rlanything.report.drawn.canvas import COLUMNS, Chart, label
from rlanything.report.drawn.cooling import cooling_chart
from rlanything.report.drawn.curves import curves_chart
from rlanything.report.drawn.judging import calibration_chart, hacking_chart
from rlanything.report.report_data import ReportData
from rlanything.report.style import SETTINGS

FORMATS = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
"""Metadata that would change with the day or the version is left out."""
PAPER = {"pdf": {"Creator": None, "Producer": None, "CreationDate": None}}
KINDS = (*FORMATS, *PAPER, "csv")
"""The endings of the files of one figure."""
DIGITS = 6

__all__ = ["FORMATS", "KINDS", "charts", "draw", "label"]


def draw(shown: Iterable[Chart], kinds: Collection[str] = KINDS) -> Iterator[tuple[str, bytes]]:
    """(file name, content) of the figures of these charts. kinds: the forms, of `KINDS`."""
    formats = {kind: metadata for kind, metadata in (FORMATS | PAPER).items() if kind in kinds}
    with mpl.rc_context(SETTINGS):
        for chart in shown:
            for kind, content in rendered(chart.draw(), formats):
                yield f"{chart.name}.{kind}", content
            if "csv" in kinds:
                yield f"{chart.name}.csv", _csv(chart)


def charts(data: ReportData) -> Iterator[Chart]:
    """Every chart with its numbers. Nothing is drawn. In a figure a panel without data says so."""
    curves, cells, contents = data.curves, data.cells, data.contents
    for drawing in contents.drawings:
        yield curves_chart(drawing, curves, cells)
    yield gains_chart(cells, contents)
    if data.cooled is not None and data.cooled.shares:
        yield cooling_chart(data.cooled)
    if contents.acts:
        yield steps_chart(data.extras.within, contents, cells)
        yield calibration_chart(data.votes, cells)
        yield hacking_chart(curves, data.votes, cells)


def rendered(figure: Figure, formats: dict[str, dict[str, None]] = FORMATS) -> Iterator[tuple[str, bytes]]:
    """(ending, content) of a figure."""
    for kind, metadata in formats.items():
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, metadata=metadata)
        yield kind, buffer.getvalue()


def _csv(chart: Chart) -> bytes:
    """The numbers of a chart: shares are fractions, as in metrics.jsonl."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*COLUMNS, *(["iteration"] if chart.iterations else [])])
    more = [[one] for one in chart.iterations] or [[]] * len(chart.rows)
    for given, own in zip(chart.rows, more, strict=True):
        row = [*given, *own]
        writer.writerow("" if x is None else round(x, DIGITS) if isinstance(x, float) else x for x in row)
    return stream.getvalue().encode()
