"""Arms that make no sense are refused, and so are judges that cannot judge."""

from __future__ import annotations

import pytest
from config_cases import PARAMS, changed, problem

from rlanything.config import parse
from rlanything.core.errors import ConfigError
from rlanything.core.printable import safe
from rlanything.rewards.kind import kind_of


@pytest.mark.parametrize(
    "name", ["../../x", "/tmp/x", "", ".hidden", "base", "a/b", "a\n", "a\x9bb", "a\u202eb", "x" * 61]
)
def test_an_arm_that_could_not_name_a_folder_is_refused(name):
    arms = {**PARAMS["arms"], name: PARAMS["arms"]["full"]}
    assert f"arms.{safe(name)}: an arm names a folder" in problem(arms=arms)


def test_an_unknown_arm_is_refused_with_the_nearest_name():
    with pytest.raises(ConfigError, match="arm 'policy_rewards': unknown; did you mean 'policy_reward'"):
        parse(PARAMS).arm("policy_rewards")


def test_an_arm_may_take_its_reward_model_only_from_an_arm_that_exists():
    message = problem(arms__full__reward_from="polcy")
    assert "arms.full.reward_from = 'polcy': unknown; did you mean 'policy'?" in message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arms__full__reward_from": "policy"}, "arms.full.reward_from = 'policy': trains no reward model"),
        ({"arms__full__reward_from": "full"}, "arms.full.reward_from = 'full': in a circle: full -> full"),
        (
            {"arms__full__reward_from": "policy_reward", "arms__policy_reward__reward_from": "full"},
            "in a circle: policy_reward -> full -> policy_reward",
        ),
        ({"arms__full__advantage": "trajectory"}, "it needs outcome = True and step_votes = False"),
        ({"arms__policy__outcome": False, "arms__policy__advantage": "mixed"}, "it needs outcome = True"),
        ({"arms__full__advantage": "episode"}, "arms.full.advantage = 'episode'"),
        ({"arms__full__max_batches": 0}, "arms.full.max_batches = 0"),
        (
            {"arms__policy__outcome": False, "arms__policy__max_batches": 2},
            "with outcome = False it must be 1",
        ),
        ({"signals__reward_lambda": -1.0}, "signals.reward_lambda = -1.0"),
        ({"arms__policy__vote_weight": -1.0}, "arms.policy.vote_weight = -1.0"),
        (
            {"arms__outcome__vote_weight": 0.5},
            "vote_weight = 0.5: without step_votes there is nothing to weigh",
        ),
        (
            {"arms__policy__outcome": False, "arms__policy__vote_weight": 0.0},
            "vote_weight = 0.0: with outcome = False there is no other reward",
        ),
        (
            {"arms__policy__outcome": False, "signals__lambda": 0.0},
            "signals.lambda = 0.0: with arms.policy.outcome = False there is no other reward",
        ),
        (
            {"arms__full__outcome": False, "signals__reward_lambda": 0.0},
            "signals.reward_lambda = 0.0: with arms.full.outcome = False the reward model has no other reward",
        ),
        ({"judge__m": 1}, "judge.m = 1: arms.policy_reward.train_reward = True"),
    ],
)
def test_an_arm_that_makes_no_sense_is_refused(changes, message):
    assert message in problem(**changes)


def test_what_would_make_no_sense_elsewhere_is_allowed_where_another_reward_or_no_learner_is():
    arms = {"votes": {**PARAMS["arms"]["policy"], "outcome": False, "vote_weight": 0.5}}
    found = parse(changed(arms=arms, signals__lambda=0.0, judge__m=1))
    assert found.arm("votes").lambda_of(found.signals) == 0.5


def test_an_arm_without_any_reward_is_refused():
    assert "needs outcome or step_votes" in problem(arms__outcome__outcome=False)


def test_a_reward_model_that_is_not_asked_cannot_learn():
    assert "train_reward = True: without step_votes" in problem(arms__full__step_votes=False)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"judge__source": "orakel"}, "judge.source = 'orakel'"),
        (
            {"judge__accuracy": 0.9},
            "accuracy = 0.9: only the oracle has declared errors; needs source = 'oracle'",
        ),
        ({"judge__systematic": 0.5}, "systematic = 0.5: only the oracle has declared errors"),
        ({"arms__policy__judge": {"source": "oracle", "accuracy": 1.5}}, "arms.policy.judge.accuracy = 1.5"),
        (
            {"arms__policy__judge": {"source": "oracle", "acuracy": 1}},
            "arms.policy.judge.acuracy: unknown; did you mean 'accuracy'?",
        ),
        (
            {"arms__full__judge": {"source": "oracle"}},
            "arms.full.train_reward = True: its judge is the oracle, which has nothing to train",
        ),
        ({"judge__source": "oracle"}, "arms.policy_reward.train_reward = True: its judge is the oracle"),
    ],
)
def test_an_oracle_is_declared_in_full_and_trains_nothing(values, expected):
    assert expected in problem(**values)


class Silent:
    """A task family that knows nothing of its steps."""


def test_an_environment_without_an_oracle_cannot_be_the_judge():
    data = changed(arms__policy__judge={"source": "oracle"})
    with pytest.raises(
        ConfigError, match=r"judge.source = 'oracle': Silent does not know which steps are good"
    ):
        kind_of(parse(data)).check(parse(data), Silent())
