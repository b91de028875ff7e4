"""Every setting beside its source, those that differ from the paper first; and what warned of itself while training."""

from __future__ import annotations

from rlanything.config.sources import SETTINGS, setting_of
from rlanything.report import configuration, health
from rlanything.report.formatting import SETTINGS_FOLD, code, markdown_table, plain
from rlanything.report.report_data import ReportData
from rlanything.report.sections.parts import bullets


def warned(data: ReportData) -> str:
    """The section Health."""
    lines = health.lines(data.curves)
    clean = "\nNo warnings.\n" if data.curves else "\nNo metrics to check.\n"
    return "## Health\n" + (bullets(lines) or clean)


def settings(data: ReportData) -> str:
    """The section."""
    rows = configuration.rows(data.config)
    differing = [
        [code(row.name), code(row.value), code(row.reference), plain(row.place)]
        for row in rows
        if row.differs
    ]
    every = [[code(row.name), code(row.value), plain(row.source)] for row in rows]
    experiment = f"the paper's {SETTINGS[setting_of(data.config)]} experiment"
    return (
        "## Settings\n\n"
        f"{len(differing)} settings differ from {experiment}: from the paper's value, or, where it has none, from that "
        f"of its reference code. {PLACES}\n\n"
        f"{markdown_table(['setting', 'here', 'paper or reference code', 'source'], differing)}\n"
        f"{SETTINGS_FOLD}\n\n"
        f"{markdown_table(['setting', 'value', 'source'], every)}\n</details>\n"
    )


PLACES = (
    "Places: of arXiv 2602.02488 v1; files of the reference code, Gen-Verse/Open-AgentRL at commit 1fe5dbd."
)
