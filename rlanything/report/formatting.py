"""Formats numbers, intervals, tables, and text from outside so that it does no harm."""

from __future__ import annotations

from rlanything.report.results.metrics import Metric
from rlanything.report.results.statistics import LEVEL, Estimate

NONE = "–"
SETTINGS_FOLD = "<details><summary>All settings</summary>"
FOLDS = (SETTINGS_FOLD, "</details>")
"""The only HTML in the report's Markdown."""


def number(value: float | None, metric: Metric, *, sign: bool = False) -> str:
    """`value` in the metric's unit with one decimal (51.2), or a dash; with `sign`, +12.0."""
    if value is None:
        return NONE
    shown = round(metric.scale * value, 1) + 0.0
    return f"{shown:+.1f}" if sign else f"{shown:.1f}"


def interval(found: Estimate | None, metric: Metric, *, sign: bool = False) -> str:
    """`51.2 [48.0, 54.1]`; the mean alone where there is no interval; a dash where there is nothing."""
    if found is None:
        return NONE
    mean = number(found.mean, metric, sign=sign)
    if found.low is None:
        return mean
    low, high = number(found.low, metric, sign=sign), number(found.high, metric, sign=sign)
    return f"{mean} [{low}, {high}]"


def smallest(difference: float | None, metric: Metric) -> str:
    """The smallest difference that would be found, as `number` shows it; two shares differ by 100 points at most."""
    beyond = difference is not None and metric.is_share and difference >= 1.0
    return "over 100" if beyond else number(difference, metric)


def p_text(p: float | None) -> str:
    """A corrected p-value to three digits; to more where these would not say on which side of the level it is."""
    if p is None:
        return NONE
    if p < 0.001:
        return "<0.001"
    return next((text for digits in range(3, 9) if float(text := f"{p:.{digits}f}") != LEVEL), f"{p:.3f}")


def plain(text: object, longest: int = 200) -> str:
    """Text on one line without control characters, cut at `longest`: safe for a terminal."""
    line = "".join(c if c.isprintable() else " " for c in str(text))
    return line if len(line) <= longest else line[: longest - 1] + "…"


def code(text: object) -> str:
    """Text from outside as a Markdown code span, where neither HTML, links nor emphasis work; safe in table cells."""
    return "`" + (plain(text).replace("`", "ˋ").replace("|", "\\|").strip() or " ") + "`"


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; cells are taken as they are. The first column is left-aligned, the others right."""
    rule = [":--"] + ["--:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows]) + "\n"
