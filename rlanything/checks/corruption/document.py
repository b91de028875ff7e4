"""The results of a corruption check as JSON, and as a page of Markdown."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rlanything.checks.corruption.results import SHARE, Found, Row
from rlanything.config import BASE
from rlanything.report.formatting import code, interval, markdown_table, p_text
from rlanything.report.results.statistics import Contrast

TITLES = {
    "swapped": "Two steps exchanged",
    "observation": "An answer from another task",
    "action": "A command from another step",
}


def to_json(found: Found) -> dict[str, Any]:
    """What corruption.json holds (format: docs/checks.md). Shares are between 0 and 1."""
    return {
        "declared": found.declared.model_dump(mode="json"),
        "seeds": list(found.seeds),
        "tasks": found.tasks,
        "kinds": {kind: {row.arm: _row_json(row) for row in found.of(kind)} for kind in found.declared.kinds},
        "keys": {arm: {str(seed): key for seed, key in keys.items()} for arm, keys in found.keys.items()},
    }


def _row_json(row: Row) -> dict[str, Any]:
    return {name: value for name, value in asdict(row).items() if name not in ("arm", "kind")}


def to_markdown(found: Found, name: str) -> str:
    """The page."""
    parts = [
        f"# Corruption {code(name)}",
        f"One step of every trajectory of the panel {code(found.declared.panel)} was damaged, and finished reward "
        f"models were asked about the result: {len(found.seeds)} seeds, {found.tasks} tasks. Percent of steps, with "
        "95 % intervals over seeds and tasks; differences in points, paired by both. *Beyond the base's* is what the "
        "damage changes, minus what it changes for the base's reward model. p is Holm's over all rows of this "
        "page that answer the same question.",
        *(_kind(found, kind) for kind in found.declared.kinds),
    ]
    return "\n\n".join(parts) + "\n"


def _kind(found: Found, kind: str) -> str:
    header = ["reward model", "damaged", "undamaged", "difference", "p", "beyond the base's", "p"]
    noticed = [
        [
            _whose(row),
            interval(row.noticed, SHARE),
            interval(row.before, SHARE),
            *_difference(row.alarm),
            *_difference(row.alarm_over_base),
        ]
        for row in found.of(kind)
    ]
    later = [
        [
            _whose(row),
            interval(row.later, SHARE),
            interval(row.undisturbed, SHARE),
            *_difference(row.loss),
            *_difference(row.loss_over_base),
        ]
        for row in found.of(kind)
    ]
    parts = [
        f"## {TITLES[kind]}",
        "How many of these steps the majority of the votes calls bad:",
        markdown_table(header, noticed).rstrip(),
        "How many labelled steps after the damage are judged rightly:",
        markdown_table(header, later).rstrip(),
    ]
    return "\n\n".join(parts)


def _whose(row: Row) -> str:
    return "the base's" if row.arm == BASE else f"of {code(row.arm)}"


def _difference(contrast: Contrast | None) -> tuple[str, str]:
    difference = interval(contrast.difference if contrast else None, SHARE, sign=True)
    return difference, p_text(contrast.p if contrast else None)
