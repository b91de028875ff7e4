"""Learning curves, and success against the steps allowed, with what may be read from them."""

from __future__ import annotations

from rlanything.report import findings, tables
from rlanything.report.report_data import ReportData
from rlanything.report.sections.parts import bullets, images


def learning(data: ReportData) -> str:
    """The section."""
    body = f"## Learning curves\n\n{images(data, 'learning')}{READING_A_CURVE}\n{_steps(data)}"
    if not data.peaks:
        return body
    return (
        f"{body}\nPeak and last point of each curve, on the small panels. A peak is picked *because* it is high, so it "
        "is optimistic; it is no result. The result is the table above.\n\n"
        + tables.peak_table(data.peaks, data.contents)
        + bullets(findings.declines(data.peaks, data.contents))
    )


def _steps(data: ReportData) -> str:
    """The figure of success against steps, where an episode has many."""
    if not data.contents.acts:
        return ""
    return (
        "\n![Success against the number of steps (paper: Fig. 6b)](figures/steps.png)\n\n"
        "Final checkpoints: the share of the games that are solved within so many steps. The policy is not told the "
        "limit, so that one evaluation gives the whole curve.\n"
    )


READING_A_CURVE = (
    "Lines: mean over seeds on the small curve panel; bands: lowest to highest seed. Markers at the right edge: final "
    "checkpoint on the full panel with its 95 % interval; dashed line: the base on the full panel."
)
