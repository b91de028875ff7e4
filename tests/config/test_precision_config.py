"""Policy and reward model may each have a precision of their own."""

from __future__ import annotations

import pytest
from config_cases import changed, problem

from rlanything.config import parse


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
