"""What docs/check_results.md says of the ladder follows from its record."""

from __future__ import annotations

import json
from typing import Any

import pytest
from recorded_cases import CHECKS, ROOT, SUCCESS, pool_rows, said, written

from rlanything.checks.ladder import document, results
from rlanything.checks.ladder.declare import load_ladder
from rlanything.config import parse
from rlanything.config.reading import load
from rlanything.planning import compose
from rlanything.report.formatting import p_text
from rlanything.report.results import statistics
from rlanything.report.results.evaluations import read_evaluation

ORACLES = (*(f"oracle_{q}" for q in (60, 75, 85, 100)), *(f"oracle_{q}_s100" for q in (60, 75, 85)))
WHOLE = ("base_cooled", "outcome", *ORACLES, "policy", "policy_reward", "ceiling", "expert")
FORMER = tuple(arm for arm in WHOLE if arm != "policy_reward")
SHORT = ("base_cooled", "outcome", "oracle_100", "ceiling", "expert")


@pytest.mark.parametrize(
    ("name", "heading", "arms"),
    [
        ("ladder", "Results of the ladder", WHOLE),
        ("fitness", "Results at the study scale", SHORT),
        ("ladder_former", "Results with the former default", FORMER),
    ],
    ids=["ladder", "fitness", "ladder_former"],
)
def test_the_table_of_a_ladder(name, heading, arms):
    page = (ROOT / "docs" / "check_results.md").read_text()
    section = page.partition(f"\n## {heading}\n")[2].partition("\n##")[0]
    rows = [
        [cell.strip() for cell in line.split("|")[2:-1]]
        for line in section.splitlines()
        if line.startswith("| ")
    ]
    panels = json.loads((CHECKS / name / "ladder.json").read_text())["panels"]
    expected = [[cell for panel in SUCCESS[:2] for cell in cells(panels[panel][arm])] for arm in arms]
    assert rows[1:] == expected


@pytest.mark.parametrize("name", ["ladder", "ladder_former", "fitness"])
def test_the_page_of_a_ladder_is_what_its_evaluations_say(name):
    folder = CHECKS / name
    found = results.read(folder, load_ladder(folder / "ladder.yaml"), load(folder / "params.yaml"))
    assert document.to_markdown(found, name) == (folder / "report.md").read_text()


def cells(row: dict[str, Any]) -> tuple[str, str, str]:
    gain, ends = (
        row["gain"],
        "" if row["low"] is None else f" [{100 * row['low']:.1f}, {100 * row['high']:.1f}]",
    )
    return (
        f"{100 * row['mean']:.1f}{ends}",
        "–" if gain is None else written(gain),
        "–" if gain is None else p_text(gain["p"]),
    )


def test_the_former_default_is_declared_as_it_was():
    """It ran before it was the former one, without overrides."""
    declared = load_ladder(ROOT / "experiments" / "check" / "ladder_former.yaml")
    record = load(CHECKS / "ladder_former" / "params.yaml")
    today = parse(compose.compose(list(declared.overrides), ROOT))
    assert (today.signals.lambda_, today.env["habits"]) == (record.signals.lambda_, record.env["habits"])
    assert today.evaluate.repeats == record.evaluate.repeats
    assert {name: panel.tasks for name, panel in today.tasks.panels.items()} == {
        name: panel.tasks for name, panel in record.tasks.panels.items()
    }
    stored = load_ladder(CHECKS / "ladder_former" / "ladder.yaml")
    assert declared.model_copy(update={"overrides": stored.overrides}) == stored


def test_the_verdict_of_the_ladder_of_the_former_default():
    found = json.loads((CHECKS / "ladder_former" / "ladder.json").read_text())
    gain, headroom, errors = (one["value"] for one in found["criteria"])
    four = next(x for x in found["power"]["in_domain"]["smallest"] if (x["seeds"], x["games"]) == (4, 100))
    page = said("docs/check_results.md")
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


def test_the_verdict_of_the_ladder():
    found = json.loads((CHECKS / "ladder" / "ladder.json").read_text())
    gain, headroom, errors = (one["value"] for one in found["criteria"])
    four = next(x for x in found["power"]["in_domain"]["smallest"] if (x["seeds"], x["games"]) == (4, 400))
    page = said("docs/check_results.md")
    assert f"In-domain, perfect votes are {gain:.1f} points above `outcome` (15), and the ceiling is" in page
    assert f"the ceiling is {headroom:.1f} points above the cooled base (20). But 5 points" in page
    assert f"But 5 points are only {errors:.1f} standard errors (4)" in page
    assert f"With twelve seeds they would be {_errors(found, 'in_domain', 12):.1f}." in page
    assert f"a difference below {100 * four['difference']:.1f} points is found less than" in page
    assert ("With four seeds the regime is not fit" in page) != found["fit"]


def test_where_the_reward_models_of_the_ladder_lie():
    models = json.loads((CHECKS / "ladder" / "ladder.json").read_text())["reward_models"]
    places = {f"{100 * model['single_if_independent']:.1f}" for model in models.values()}
    majorities = {f"{100 * model['accuracy']:.1f}" for model in models.values()}
    page = said("docs/check_results.md")
    assert [f"**Both reward models lie at {place} % of the axis**" in page for place in places] == [True]
    assert [f"Their majorities are right for {share} % of the steps" in page for share in majorities] == [
        True
    ]


def test_what_errors_that_all_votes_share_cost_in_the_ladder():
    folder = CHECKS / "ladder" / "evaluation"

    def cost(share: int, metric: str) -> tuple[str, float | None]:
        alone, shared = (
            read_evaluation(folder / f"{arm}.json", arm)[metric]
            for arm in (f"oracle_{share}", f"oracle_{share}_s100")
        )
        found = statistics.contrast(alone, shared)
        assert found is not None
        mean, low, high = (100 * getattr(found.difference, key) for key in ("mean", "low", "high"))
        return f"{mean:.1f} {{}}[{low:+.1f}, {high:+.1f}]", found.p

    page = said("docs/check_results.md")
    (inside, p), (outside, other) = cost(60, "in_domain"), cost(60, "out_of_domain")
    assert f"that is {inside.format('points less than with independent errors in-domain ')}" in page
    assert f"and {outside.format('out-of-domain ')}" in page
    assert f"its p of {p:.3f} and {other:.3f} is not corrected" in page
    assert f"At 75 % shared errors cost {cost(75, 'in_domain')[0].format('points ')}" in page
    assert f"and at 85 % {cost(85, 'in_domain')[0].format('')}" in page


def _errors(found: dict[str, Any], panel: str, seeds: int) -> float:
    """How many standard errors 5 points are, with 400 games."""
    rows = found["power"][panel]["smallest"]
    (row,) = (row for row in rows if (row["seeds"], row["games"]) == (seeds, 400))
    return 0.05 / float(row["standard_error"])


def test_the_verdict_at_the_study_scale():
    found = json.loads((CHECKS / "fitness" / "ladder.json").read_text())
    gain, headroom, errors = (one["value"] for one in found["criteria"])
    eight, outside = (_errors(found, *of) for of in (("in_domain", 8), ("out_of_domain", 12)))
    page = said("docs/check_results.md")
    assert f"perfect votes are {gain:.1f} points above `outcome` (15)" in page
    assert f"the ceiling is {headroom:.1f} points above the cooled base (20)" in page
    assert f"5 points are {errors:.1f} standard errors (4)" in page
    assert f"5 points are then {eight:.1f} standard errors" in page
    assert f"**Out-of-domain** 5 points are {outside:.1f} standard errors with twelve seeds" in page
    assert f"in-domain 5 points are {errors:.1f} standard errors, with 8 seeds {eight:.1f}" in said(
        "docs/default_experiment.md"
    )
    assert (
        f"A difference of 5 points is {errors:.1f} standard errors there, and {outside:.1f} out-of-domain."
        in said("README.md")
    )
    assert ("**The regime is fit**, by the thresholds." in page) == found["fit"]


def test_outcomes_over_cooling_with_the_habits_of_the_default():
    pooled = next(r for r in pool_rows() if (r["arm"], r["metric"]) == ("outcome", "in_domain"))[
        "differences"
    ]
    gain = {one["experiment"].removeprefix("checks/"): 100 * one["mean"] for one in pooled}
    default = json.loads((ROOT / "report" / "summary.json").read_text())["outcome"]["in_domain"]["vs"]
    page = said("docs/default_experiment.md")
    names = ("fitness", "table1_fit", "votes_apart", "paper_start", "arms_fit", "paper_start_mixed")
    *some, last = (f"{gain[name]:.1f}" for name in names)
    assert f"outcomes are {', '.join(some)} and {last} points above the cooled base in-domain, in six" in page
    own = f"{100 * default['base_cooled']['mean']:.1f}"
    assert f"In the default experiment it is {own}, and in" in page
    assert f"with four seeds too, {gain['ladder']:.1f}." in page


def test_what_errors_that_all_tests_share_cost_in_the_ladder_of_written_tests():
    folder = CHECKS / "written_tests" / "evaluation"

    def above(arm: str, over: str, metric: str) -> str:
        left, right = (read_evaluation(folder / f"{name}.json", name)[metric] for name in (arm, over))
        found = statistics.contrast(left, right)
        assert found is not None
        mean, low, high = (100 * getattr(found.difference, key) for key in ("mean", "low", "high"))
        return f"{mean:.1f} {{}}[{low:+.1f}, {high:+.1f}]"

    page, alone, shared = said("docs/check_results.md"), "oracle_40", "oracle_40_s100"
    for text in (
        f"they cost {above(alone, shared, 'in_domain').format('points more than independent ones in-domain ')}, "
        f"and {above(alone, shared, 'out_of_domain').format('out-of-domain ')}",
        f"That costs {above('oracle_100', alone, 'in_domain').format('points in-domain ')} and "
        f"{above('oracle_100', alone, 'out_of_domain').format('out-of-domain ')}",
        f"`policy` is {above('policy', shared, 'in_domain').format('points above the tests with shared errors ')}",
        f"Perfect tests are {above('oracle_100', 'policy', 'in_domain').format('points above it ')}",
        f"is {above('ceiling', 'oracle_100', 'in_domain').format('points above perfect tests in-domain ')}",
    ):
        assert text in page
    written = json.loads((CHECKS / "written_tests" / "ladder.json").read_text())
    share = written["reward_models"]["policy"]["accuracy"]
    assert f"writes tests of which {100 * share:.1f} % are right" in page
    gain, headroom, errors = (one["value"] for one in written["criteria"])
    assert f"5 points are {errors:.1f} standard errors (4 are asked for)" in page
    assert f"would give {_errors(written, 'in_domain', 12):.1f}." in page
    assert f"{gain:.1f} points above `outcome` (15), and the ceiling is {headroom:.1f} points above" in page
