"""Policy and reward model may each have a precision of their own."""

from __future__ import annotations

import pytest
from config_cases import changed, problem

from rlanything.config import parse
from rlanything.planning.costs.hours import width_of
from rlanything.stages.dependencies import trained


def test_a_model_without_a_precision_of_its_own_has_that_of_the_training():
    config = parse(changed(train__precision="bf16-mixed", learn__reward__precision="bf16-true"))
    found = {name: config.precision(name) for name in ("policy", "reward", "adapter")}
    assert found == {"policy": "bf16-mixed", "reward": "bf16-true", "adapter": "bf16-mixed"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"learn__policy__precision": "bf16"},
            "learn.policy.precision = 'bf16': Input should be '32-true', ",
        ),
        ({"learn__adapter": {"precision": "32-true"}}, "learn.adapter: unknown"),
        ({"learn__reward__precison": "32-true"}, "learn.reward.precison: unknown; did you mean 'precision'?"),
    ],
)
def test_a_precision_that_there_is_not_is_refused_by_its_key(changes, words):
    assert words in problem(**changes)


def test_an_arm_depends_on_the_format_of_a_reward_model_that_it_loads():
    """`outcome` measures it at its first iteration. The oracle is no model."""
    found = {arm: columns["learner"] for arm, columns in trained(parse(changed())).items()}
    loads = "learn.reward.precision"
    assert found == {
        "outcome": loads, "policy": loads, "policy_reward": "learn.reward", "full": "learn.reward"
    }  # fmt: skip
    judged = parse(changed(arms__policy__judge={"source": "oracle", "accuracy": 1.0}))
    assert trained(judged)["policy"]["learner"] == "learn.policy"


def test_a_plan_counts_other_policies_and_judges_in_the_format_in_which_they_are_loaded():
    own = {"learn__policy__precision": "32-true", "learn__reward__precision": "bf16-true"}
    config = parse(changed(train__precision="bf16-mixed", **own))
    names = ("policy", "solver", "reward_policy", "reward", "judge strong", "adapter")
    assert [width_of(config, name, ()) for name in names] == [4, 4, 4, 2, 2, 2]
