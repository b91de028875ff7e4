"""What docs/checks.md says of the ladder follows from its record."""

from __future__ import annotations

import json
from typing import Any

import pytest
from recorded_cases import CHECKS, ROOT, SUCCESS, pool_rows, said, written

from rlanything.report.formatting import p_text

WHOLE = ("base_cooled", "outcome", *(f"oracle_{q}" for q in (60, 75, 85, 100)))
WHOLE += (*(f"oracle_{q}_s100" for q in (60, 75, 85)), "policy", "ceiling", "expert")
SHORT = ("base_cooled", "outcome", "oracle_100", "ceiling", "expert")


@pytest.mark.parametrize(
    ("name", "heading", "arms"),
    [("ladder", "Results", WHOLE), ("fitness", "Results at the study scale", SHORT)],
    ids=["ladder", "fitness"],
)
def test_the_table_of_a_ladder(name, heading, arms):
    page = (ROOT / "docs" / "checks.md").read_text()
    section = page.partition(f"\n### {heading}\n")[2].partition("\n###")[0]
    rows = [
        [cell.strip() for cell in line.split("|")[2:-1]]
        for line in section.splitlines()
        if line.startswith("| ")
    ]
    panels = json.loads((CHECKS / name / "ladder.json").read_text())["panels"]
    expected = [[cell for panel in SUCCESS[:2] for cell in cells(panels[panel][arm])] for arm in arms]
    assert rows[1:] == expected


def cells(row: dict[str, Any]) -> tuple[str, str, str]:
    mean, low, high = (100 * row[key] for key in ("mean", "low", "high"))
    gain = row["gain"]
    return (
        f"{mean:.1f} [{low:.1f}, {high:.1f}]",
        "–" if gain is None else written(gain),
        "–" if gain is None else p_text(gain["p"]),
    )


def test_the_verdict_of_the_ladder():
    found = json.loads((CHECKS / "ladder" / "ladder.json").read_text())
    gain, headroom, errors = (one["value"] for one in found["criteria"])
    four = next(x for x in found["power"]["in_domain"]["smallest"] if (x["seeds"], x["games"]) == (4, 100))
    page = said("docs/checks.md")
    assert f"The ceiling is {headroom:.1f} points above the cooled base (20 are asked for)" in page
    assert (
        f"perfect votes are {gain:.1f} points above `outcome` (15), and 5 points are {errors:.1f} standard"
        in page
    )
    assert (
        f"a difference below {100 * four['difference']:.1f} points is found less than four times in five"
        in page
    )
    assert found["fit"] is False


def _errors(found: dict[str, Any], panel: str, seeds: int) -> float:
    """How many standard errors 5 points are, with 400 games."""
    rows = found["power"][panel]["smallest"]
    (row,) = (row for row in rows if (row["seeds"], row["games"]) == (seeds, 400))
    return 0.05 / float(row["standard_error"])


def test_the_verdict_at_the_study_scale():
    found = json.loads((CHECKS / "fitness" / "ladder.json").read_text())
    gain, headroom, errors = (one["value"] for one in found["criteria"])
    eight, outside = (_errors(found, *of) for of in (("in_domain", 8), ("out_of_domain", 12)))
    page = said("docs/checks.md")
    assert f"perfect votes are {gain:.1f} points above `outcome` (15)" in page
    assert f"the ceiling is {headroom:.1f} points above the cooled base (20)" in page
    assert f"5 points are {errors:.1f} standard errors (4)" in page
    assert f"5 points are then {eight:.1f} standard errors" in page
    assert f"**Out-of-domain** 5 points are {outside:.1f} standard errors with twelve seeds" in page
    assert f"in-domain 5 points are {errors:.1f} standard errors, with 8 seeds {eight:.1f}" in said(
        "docs/results.md"
    )
    assert f"5 points are {errors:.1f} standard errors. Out-of-domain they are {outside:.1f}." in said(
        "README.md"
    )
    assert ("**The regime is fit**, by the thresholds." in page) == found["fit"]


def test_outcomes_over_cooling_with_the_habits_of_the_default():
    pooled = next(r for r in pool_rows() if (r["arm"], r["metric"]) == ("outcome", "in_domain"))[
        "differences"
    ]
    gain = {one["experiment"].removeprefix("checks/"): 100 * one["mean"] for one in pooled}
    default = json.loads((ROOT / "report" / "summary.json").read_text())["outcome"]["in_domain"]["vs"]
    page = said("docs/results.md")
    *some, last = (
        f"{gain[name]:.1f}" for name in ("fitness", "table1_fit", "votes_apart", "paper_start", "arms_fit")
    )
    assert (
        f"outcomes are {', '.join(some)} and {last} points above the cooled base in-domain, in five" in page
    )
    assert f"In the default experiment it is {100 * default['base_cooled']['mean']:.1f}." in page
