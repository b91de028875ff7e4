"""Accuracy at equal tokens: each curve is read where its run had sampled what the cheapest run did in all."""

from __future__ import annotations

import pytest
import report_cases as cases

from rlanything.report import document
from rlanything.report.report_data import gather
from rlanything.report.results.curves import Run
from rlanything.report.results.equal_tokens import at_equal_tokens
from rlanything.report.results.metrics import named

IN_DOMAIN = named("in_domain")


def run(tokens: dict[int, float], curve: dict[int, float]) -> Run:
    return {"tokens_before": tokens, "panel/in_domain": curve}


def test_a_curve_is_read_on_the_line_between_the_points_before_and_after_the_budget():
    cheap = run({0: 0.0, 1: 50.0, 2: 100.0}, {0: 0.2, 2: 0.4})
    dear = run({0: 0.0, 1: 400.0, 2: 800.0}, {0: 0.2, 1: 0.6, 2: 0.8})
    found = at_equal_tokens({"outcome": {0: cheap}, "full": {0: dear}}, [IN_DOMAIN])
    assert found.budget == 100.0
    assert (found.arms["outcome"].tokens, found.arms["full"].tokens) == (100.0, 800.0)
    assert (
        found.arms["outcome"].at["in_domain"] == found.arms["outcome"].end["in_domain"] == pytest.approx(0.4)
    )
    assert found.arms["full"].at["in_domain"] == pytest.approx(0.3)
    assert found.arms["full"].end["in_domain"] == pytest.approx(0.8)


def test_seeds_are_averaged_and_the_cheapest_of_all_runs_sets_the_budget():
    one, two = run({0: 0.0, 1: 100.0}, {0: 0.0, 1: 1.0}), run({0: 0.0, 1: 200.0}, {0: 0.0, 1: 1.0})
    found = at_equal_tokens({"outcome": {0: one, 1: two}, "full": {0: two}}, [IN_DOMAIN])
    assert found.budget == 100.0
    assert found.arms["outcome"].at["in_domain"] == pytest.approx(0.75)
    assert found.arms["full"].at["in_domain"] == pytest.approx(0.5)


def test_without_two_arms_that_counted_their_tokens_nothing_is_compared():
    old, new = {"panel/in_domain": {0: 0.5}}, run({0: 0.0, 1: 9.0}, {0: 0.5, 1: 0.6})
    assert at_equal_tokens({}, [IN_DOMAIN]) is None
    assert at_equal_tokens({"outcome": {0: old}, "full": {0: new}}, [IN_DOMAIN]) is None
    assert at_equal_tokens({"outcome": {0: new, 1: old}, "full": {0: new}}, [IN_DOMAIN]) is None


def test_the_report_has_the_table_once_runs_count_their_tokens(tmp_path):
    root = cases.project(tmp_path, seeds=1)
    assert "equal tokens" not in document.report_md(gather(cases.config(), root))
    for arm, cost in (("outcome", 1000), ("policy", 4000), ("policy_reward", 4000), ("full", 5000)):
        rows = [{**row, "tokens_before": cost * row["iteration"]} for row in cases.metrics(arm, 0)]
        cases.write_metrics(root, arm, 0, rows)
    page = document.report_md(gather(cases.config(), root))
    table = page.split("### Accuracy at equal tokens")[1]
    assert "at 24,000 / at the end" in table
    assert "| `outcome` | 24,000 |" in table
    assert "| `full` | 120,000 |" in table
    assert "free of charge" not in page


def test_an_arm_with_another_arms_reward_model_has_it_free_of_charge_and_the_report_says_so(tmp_path):
    root = cases.project(tmp_path, ("base", "full", "step_only"), seeds=1)
    for arm in ("full", "step_only"):
        rows = [{**row, "tokens_before": 1000 * row["iteration"]} for row in cases.metrics(arm, 0)]
        cases.write_metrics(root, arm, 0, rows)
    arms = {
        "full": {"step_votes": True, "train_reward": True, "adapt": True},
        "step_only": {
            "outcome": False,
            "step_votes": True,
            "train_reward": False,
            "adapt": False,
            "reward_from": "full",
        },
    }
    page = document.report_md(gather(cases.config(arms=arms), root))
    assert "`step_only` has the reward model that `full` has trained free of charge" in page
