"""A selection's results as JSON, and as a page of Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rlanything.checks.selection.declare import ORACLE, SINGLE
from rlanything.checks.selection.figure import NAME
from rlanything.checks.selection.results import Counts, Found, Row
from rlanything.config import BASE
from rlanything.report.formatting import code, interval, markdown_table, p_text
from rlanything.report.results.statistics import Contrast

TITLES = {
    SINGLE: "a single program (pass@1)",
    "best_of_n": "Best of N: most written tests passed",
    "mpsc": "MPSC, of programs and tests",
    "s_star": "S*, its selection by written inputs",
    ORACLE: "any program right (pass@N)",
}
"""Column -> what it is called on the page."""


def to_json(found: Found) -> dict[str, Any]:
    """What selection.json holds (format: docs/checks.md). Shares are between 0 and 1."""
    return {
        "selection": found.selection.model_dump(mode="json"),
        "seeds": list(found.seeds),
        "problems": found.problems,
        "pairs": {arm: {row.column: _row_json(row) for row in found.of(arm)} for arm in found.arms},
        "counts": {arm: asdict(counts) for arm, counts in found.counts.items()},
        "measured": {arm: {str(seed): key for seed, key in keys.items()} for arm, keys in found.keys.items()},
    }


def _row_json(row: Row) -> dict[str, Any]:
    differences = {"over_base": row.over_base, "over_single": row.over_single}
    return {**asdict(row.value), **{name: _contrast_json(c) for name, c in differences.items()}}


def _contrast_json(found: Contrast | None) -> dict[str, Any] | None:
    return None if found is None else {**asdict(found.difference), "p": found.p}


def to_markdown(found: Found, name: str) -> str:
    """The page."""
    asked = found.selection
    parts = [
        f"# Selection {code(name)}",
        f"Each policy wrote {asked.programs} programs for each of {found.problems} problems of the panel "
        f"{code(asked.panel)}, at temperature {asked.temperature:g}. The reward model of the same pair wrote "
        f"{asked.tests} tests for each. A method chooses one program by these tests; the chosen program is then run on "
        "the problem's own tests, which no method sees.",
        f"![Solved problems by method](figures/{NAME}.svg)",
        f"Solved problems in percent, with 95 % intervals over {len(found.seeds)} seeds and the problems. Differences "
        "are in points, paired by seed and problem. `over a single program` is within the pair, p by Holm over its "
        "methods; `over the base's pair` is the same row of the base, p by Holm over the arms.",
        *(_pair(found, arm) for arm in found.arms),
        _sampled(found),
    ]
    return "\n\n".join(parts) + "\n"


def _pair(found: Found, arm: str) -> str:
    rows = [
        [
            TITLES[row.column],
            interval(row.value, found.metric),
            *_difference(found, row.over_single),
            *_difference(found, row.over_base),
        ]
        for row in found.of(arm)
    ]
    header = ["chosen by", "solved %", "over a single program", "p", "over the base's pair", "p"]
    title = "The base's pair" if arm == BASE else f"The pair of {code(arm)}"
    return f"## {title}\n\n{markdown_table(header, rows)}".rstrip()


def _difference(found: Found, contrast: Contrast | None) -> Iterator[str]:
    yield interval(contrast.difference if contrast else None, found.metric, sign=True)
    yield p_text(contrast.p if contrast else None)


def _sampled(found: Found) -> str:
    header = ["pair", "programs", "lost", "unknown", "written tests", "unreadable"]
    rows = [[code(arm), *_numbers(counts)] for arm, counts in found.counts.items()]
    text = (
        "Lost programs were never judged, because their episode crashed; of unknown ones the sandbox could not say "
        "whether they are right. Both are left out. An unreadable reply holds no test."
    )
    return f"## What was sampled\n\n{text}\n\n{markdown_table(header, rows)}".rstrip()


def _numbers(counts: Counts) -> Iterator[str]:
    for number in (counts.programs, counts.lost, counts.unknown, counts.tests, counts.unreadable):
        yield str(number)
