"""A ladder's results as JSON, and as a page of Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rlanything.checks.ladder.figure import NAME
from rlanything.checks.ladder.results import Found, Row
from rlanything.config import BASE
from rlanything.report.caveats import left_out
from rlanything.report.formatting import NONE, code, interval, markdown_table, p_text, smallest
from rlanything.report.results.metrics import Metric, named


def to_json(found: Found) -> dict[str, Any]:
    """What ladder.json holds (format: docs/checks.md). Shares are between 0 and 1."""
    return {
        "ladder": found.ladder.model_dump(mode="json"),
        "games": dict(found.games),
        "panels": {panel: {row.arm: _row_json(row) for row in rows} for panel, rows in found.rows.items()},
        "reward_models": {
            mark.arm: {"accuracy": mark.accuracy, "plain": mark.plain, "single_if_independent": mark.single}
            for mark in found.marks
        },
        "temperatures": {name: dict(value) for name, value in found.temperatures.items()},
        "power": {
            panel: {"components": asdict(found.components[panel]), "smallest": [asdict(d) for d in sizes]}
            for panel, sizes in found.power.items()
        },
        "fit": found.verdict.fit,
        "verdict": found.verdict.text,
        "criteria": [{**asdict(c), "met": c.met} for c in found.verdict.criteria],
        **({"crashed": found.crashed} if found.crashed else {}),
    }


def _row_json(row: Row) -> dict[str, Any]:
    judge = None if row.point is None else asdict(row.point)
    gain = None if row.gain is None else {**asdict(row.gain.difference), "p": row.gain.p}
    return {"judge": judge, **asdict(row.value), "gain": gain}


def to_markdown(found: Found, name: str) -> str:
    """The page."""
    ladder = found.ladder
    parts = [
        f"# Ladder {code(name)}",
        f"**{found.verdict.text}**",
        "\n".join(f"- {criterion.text}" for criterion in found.verdict.criteria),
        f"![Gain over {ladder.zero} against the accuracy of the votes](figures/{NAME}.svg)",
        f"Solved tasks in percent, with 95 % intervals over {ladder.seeds} seeds and the games of a panel. Gains are "
        f"points above {code(ladder.zero)}, paired by seed and game; p is Holm's over the arms of a panel, and over "
        "its controls.",
        *left_out(found.crashed),
        *(_panel(found, metric) for metric in found.metrics),
        _marks(found),
        _temperatures(found.temperatures),
        _power(found),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _panel(found: Found, metric: Metric) -> str:
    rows = [
        [
            code(row.arm),
            NONE if row.point is None else f"{100 * row.point.accuracy:g}",
            NONE if row.point is None else f"{100 * row.point.systematic:g}",
            interval(row.value, metric),
            interval(row.gain.difference if row.gain else None, metric, sign=True),
            p_text(row.gain.p if row.gain else None),
        ]
        for row in found.rows[metric.name]
    ]
    header = ["arm", "accuracy %", "systematic %", "solved %", "gain", "p"]
    return f"## {metric.short[0].upper()}{metric.short[1:]}\n\n{markdown_table(header, rows)}".rstrip()


def _marks(found: Found) -> str:
    if not found.marks:
        return ""
    rows = [
        [
            "the base's" if mark.arm == BASE else f"of {code(mark.arm)}",
            f"{100 * mark.accuracy:.1f}",
            NONE if mark.plain is None else f"{100 * mark.plain:.1f}",
            f"{100 * mark.single:.1f}",
        ]
        for mark in found.marks
    ]
    table = markdown_table(["reward model", "accuracy %", "plain %", "on the axis %"], rows).rstrip()
    text = (
        "Measured is the balanced process accuracy of their majority verdicts on the reward panel (of written tests: "
        "the share of right ones), and the plain one. The axis has the accuracy of a single vote. Their place on it is "
        "derived: so often a single vote is right where the errors are independent and the majority has this balanced "
        "accuracy. With errors that all votes have together, a single vote is right more often than this."
    )
    return f"## Reward models\n\n{text}\n\n{table}"


def _temperatures(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The controls that are cooled: what they solve at each temperature of tasks that nothing else uses."""
    tried = list(dict.fromkeys(t for value in found.values() for t in value["shares"]))
    rows = [
        [code(name), f"{value['temperature']:g}", *(_percent(value["shares"].get(t)) for t in tried)]
        for name, value in found.items()
    ]
    text = "Percent of its own tasks that a control solves at each temperature. It plays the panels at the best one."
    header = ["control", "best", *(f"at {t}" for t in tried)]
    return f"## Temperatures\n\n{text}\n\n{markdown_table(header, rows).rstrip()}" if rows else ""


def _percent(share: float | None) -> str:
    return NONE if share is None else f"{100 * share:.1f}"


def _power(found: Found) -> str:
    wanted = found.ladder.power
    text = (
        f"The smallest difference of two arms, in points, that the test finds with probability {wanted.power:g} at "
        f"level {wanted.alpha:g}, from the spread of the differences that were measured here. That is without Holm's "
        "correction. With four seeds or fewer the test finds it less often."
    )
    rows = [
        [
            named(panel).short,
            f"{d.seeds}",
            f"{d.games}",
            f"{100 * d.standard_error:.1f}",
            smallest(d.difference, named(panel)),
        ]
        for panel, sizes in found.power.items()
        for d in sizes
    ]
    table = markdown_table(["panel", "seeds", "games", "standard error", "smallest"], rows).rstrip()
    return f"## Power\n\n{text}\n\n{table}"
