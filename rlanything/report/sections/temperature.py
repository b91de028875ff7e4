"""The control of the temperature: how good the untrained policy is when it is only less random."""

from __future__ import annotations

from rlanything.config import BASE_COOLED
from rlanything.report import findings
from rlanything.report.drawn.cooling import COOLING
from rlanything.report.formatting import code, markdown_table
from rlanything.report.report_data import ReportData
from rlanything.report.sections.parts import image, percent, titled


def temperature(data: ReportData) -> str:
    """The section; '' where there is no cooled base."""
    cooled = data.cooled
    if cooled is None:
        return ""
    return (
        "## Temperature\n\n"
        f"Training makes a policy less random, and so does a lower temperature. {code(BASE_COOLED)} is the untrained "
        f"policy at {cooled.temperature:g}, the temperature that was best for it on tasks that nothing else uses.\n\n"
        + _search(cooled.shares)
        + titled(
            "What training gains beyond that:", findings.against_cooled(data.comparison, cooled.temperature)
        )
    )


def _search(shares: dict[float, float]) -> str:
    """What every temperature was worth, drawn and as a table; '' where an older file does not say."""
    if not shares:
        return ""
    rows = [[f"{value:g}", percent(share)] for value, share in sorted(shares.items())]
    return image("The untrained policy's success against the temperature", COOLING) + markdown_table(
        ["temperature", "success in the search (%)"], rows
    )
