"""Warnings: each comes for its cause, goes with it, and says what to do; a run in order has none."""

from __future__ import annotations

import pytest
import watch_cases as cases

from rlanything.watch import machine
from rlanything.watch.advice import checks
from rlanything.watch.tolerant import numbers


def kinds(rows: list[dict]) -> set[str]:
    return {one.kind for one in checks.warnings([numbers(row) for row in rows])}


def rows(count: int = 10, start: int = 0, **values) -> list[dict]:
    return [cases.row(k, **values) for k in range(start, start + count)]


def test_a_run_in_order_has_no_warning():
    assert kinds(rows()) == kinds([]) == kinds(rows(1)) == set()
    assert kinds([*rows(), {"iteration": 10, "panel/in_domain": 0.5, "accepted_total": 9.0}]) == set()


def test_votes_that_rise_while_success_does_not_are_told_with_their_first_iteration():
    pleased = [*rows(8, mean_vote=0.1), *rows(10, 8, mean_vote=0.7, accuracy=0.4)]
    assert kinds(pleased) == {"votes flatter"}
    (one,) = checks.warnings([numbers(row) for row in pleased])
    assert "rose by 0.60 while accuracy changed by -10.0 points, from iteration 9 on" in one.text
    assert one.todo.startswith("`rlanything rollouts paid RUN`")
    assert kinds([*rows(8, mean_vote=0.1), *rows(10, 8, mean_vote=0.6, accuracy=0.9)]) == set()
    assert kinds(pleased[:9]) == set(), "too few iterations to say"


def test_votes_that_become_alike_are_told_of_a_reward_model_that_learns():
    learning = {"reward/rows": 9.0}
    sure = [*rows(5, unanimous=0.33, **learning), *rows(5, 5, unanimous=0.61, **learning)]
    assert kinds(sure) == {"votes alike"}
    (one,) = checks.warnings([numbers(row) for row in sure])
    assert "agree on 61% of the steps, of 33% at first" in one.text
    assert kinds([*rows(5, unanimous=0.33, **learning), *rows(5, 5, unanimous=0.45, **learning)]) == set()
    assert kinds([*rows(5, unanimous=0.33), *rows(5, 5, unanimous=0.61, **{"reward/rows": 0.0})]) == set(), (
        "it is frozen"
    )
    assert kinds(sure[:5]) == set(), "too few iterations to say"


CAUSES = [
    ("nothing learnt", {"policy_trajectories": 0.0}),
    ("no spread", {"tasks_with_spread": 0.0}),
    ("outside the band", {"band_coverage": 0.1}),
    ("no rewrite", {"accepted": 0.0, "accept_rate": 0.0}),
    ("invalid proposals", {"invalid_proposals": 0.9}),
    ("mu at chance", {"mu": 0.97}),
    ("invalid votes", {"invalid_votes": 0.2}),
    ("invalid tests", {"invalid_tests": 0.2}),
    ("invalid actions", {"invalid_actions": 0.6}),
    ("crashed", {"status/env_error": 8.0}),
    ("timed out", {"status/timeout": 8.0}),
    ("context full", {"context_full": 0.5}),
    ("policy moves far", {"policy/kl": 0.5}),
    ("mismatch of policy", {"policy/mismatch_kl": 0.05}),
    ("cut ratios of reward", {"reward/ratio_capped": 0.05}),
    ("masked tokens of policy", {"policy/ratio_masked": 0.05}),
    ("loss not finite", {"policy/loss": None}),
]


@pytest.mark.parametrize(("kind", "cause"), CAUSES, ids=[kind for kind, _ in CAUSES])
def test_it_comes_for_its_cause_and_goes_with_it(kind, cause):
    assert kinds([*rows(5), *rows(5, 5, **cause)]) == {kind}
    assert kinds([*rows(5, **cause), *rows(5, 5)]) == set()


@pytest.mark.parametrize(
    "cause", [cause for kind, cause in CAUSES if kind not in ("no rewrite", "loss not finite")]
)
def test_one_bad_iteration_is_no_warning_yet_where_the_mean_is_good(cause):
    ((key, bad),) = cause.items()
    good = cases.row(0).get(key) or 0.0
    mild = (9 * good + bad) / 10  # a tenth of the way: a value that one bad iteration could leave as the mean
    assert kinds([*rows(9), *rows(1, 9, **{key: mild})]) == set()


def test_errors_that_grow_are_told_before_they_are_many():
    few = {"status/ok": 95.0, "status/truncated": 2.0, "status/timeout": 3.0}
    assert kinds(rows(10, **few)) == set(), "three percent, as ever"
    assert kinds([*rows(7), *rows(3, 7, **few)]) == {"timed out"}


def test_mu_that_falls_is_told_before_it_is_at_chance():
    falling = [cases.row(k, mu=1.35 - 0.035 * k) for k in range(10)]
    assert kinds(falling) == {"mu falls"}
    assert kinds(rows(10, mu=1.08)) == set(), "low from the start, but it does not fall"


@pytest.mark.parametrize("learns", [True, False])
def test_a_reward_model_at_chance_is_to_learn_if_it_does_not(learns):
    (one,) = checks.warnings(
        [numbers(row) for row in rows(mu=0.97, **{"reward/rows": 9.0 if learns else 0.0})]
    )
    assert ("let it learn" in one.todo) is not learns
    assert "`advantage: mixed`" in one.todo


def test_a_policy_below_its_base_is_told_by_the_size_of_the_panel():
    curve = [0.6, 0.5, 0.4, 0.4]
    found = [numbers(cases.row(k, **{"panel/in_domain": value})) for k, value in enumerate(curve)]
    assert {one.kind for one in checks.warnings(found, 50)} == {"below the base"}
    assert checks.warnings(found, 6) == [], "six tasks say little"
    later = [{**numbers(cases.row(k)), "panel/in_domain": None} for k in range(4, 9)]
    (one,) = checks.warnings([*found, *later], 50)
    assert one.text == "panel/in_domain is 0.40 in iteration 3; the base had 0.60"
    chance = [{key: value for key, value in row.items() if key != "panel/in_domain"} for row in found]
    assert (
        checks.warnings([{**row, "panel/rm_process": v} for row, v in zip(chance, curve, strict=True)], 50)
        == []
    )


def test_every_warning_says_what_to_do():
    for _, cause in CAUSES:
        for one in checks.warnings([numbers(row) for row in rows(10, **cause)]):
            assert one.text
            assert one.todo


def test_a_table_of_gpus_is_read_and_what_is_none_is_left_out():
    text = "0, NVIDIA H100, 87, 1024, 81559\n1, NVIDIA H100, [N/A], 3, 81559\nnonsense\n, , , ,\n"
    first, second = machine.parsed(text)
    assert (first.index, first.busy, first.used, first.total) == (0, 0.87, 1024.0, 81559.0)
    assert second.busy is None
