"""Which settings of a comparison are named and shown: no secret, no private place, every switch under its own arm."""

from __future__ import annotations

from typing import Any

import pytest

from rlanything.compare.settings import UNSHOWN, differing
from rlanything.compare.side import Arm, Side, settings_of

SECRET = "hunter"
SHOWN = [
    ("env.engine", "fast"),
    ("engine._target_", "rlanything.engines.native.NativeEngine"),
    ("engine.memory", 0.5),
    ("executor.form", "ray"),
    ("judge.writes", "votes"),
    ("model.policy.path", "Qwen/Qwen3-8B"),
    ("model.prompts", "experiments/prompts"),
    ("signals.lambda", 0.25),
    ("endpoints.reward.concurrency", 4),
    ("train.loggers.mine._target_", "lightning.pytorch.loggers.CSVLogger"),
    ("rollout.max_tokens", 64),
    ("learn.stop", ["a", "b"]),
    ("env.api_key", None),
]
HIDDEN = [
    ("env.api_key", SECRET),
    ("env.login.password", SECRET),
    ("engine.hub_token", SECRET),
    ("engine.access_key", SECRET),
    ("env.secret_number", 1234),
    ("env.servers", [{"api_key": SECRET}]),
    ("env.data", "/home/me/games"),
    ("env.command", ["bridge", "--key", "x1"]),
    ("executor.address", "head:6379"),
    ("endpoints.reward.base_url", "http://me"),
    ("endpoints.reward.key_env", SECRET),
    ("endpoints.reward.extra.user", SECRET),
    ("train.loggers.mine.project", SECRET),
    ("train.callbacks.mine.path", SECRET),
    ("model.policy.path", "/home/me/model"),
    ("model.policy.path", "~/model"),
    ("model.prompts", "s3://bucket/x"),
    ("judge.api_key", SECRET),
    ("tracker.name", SECRET),
    ("env", SECRET + " x"),
    ("endpoints", SECRET),
    ("env._target_", "no class at all"),
]


def side(raw: dict[str, Any], *arms: str) -> Side:
    return Side("A", "a", "made up", {arm: Arm(arm) for arm in arms or ("full",)}, *settings_of(raw), None)


def nested(key: str, value: Any) -> dict[str, Any]:
    for name in reversed(key.split(".")):
        value = {name: value}
    return value


@pytest.mark.parametrize(("key", "value"), SHOWN, ids=str)
def test_what_is_of_the_experiment_is_shown(key, value):
    (row,) = [row for row in differing([side(nested(key, value)), side({"seed": 1})]) if row.key == key]
    assert row.values[0] != UNSHOWN


@pytest.mark.parametrize(("key", "value"), HIDDEN, ids=str)
def test_what_may_be_private_is_not(key, value):
    (row,) = [row for row in differing([side(nested(key, value)), side({"seed": 1})]) if row.key == key]
    assert row.values == (UNSHOWN, "–")


def test_switches_stand_under_their_own_arm():
    """An arm's name may have dots in it and begin as another's; a switch may have parts."""
    arms = {"full": {"adapt": True, "judge": None}, "full.judge": {"adapt": False}}
    other = {"full": {"adapt": True, "judge": {"source": "oracle"}}, "full.judge": {"adapt": False}}
    one, two = {"arms": arms, "seed": 1}, {"arms": other, "seed": 2}
    rows = {row.key: row.values for row in differing([side(one), side(two)])}
    assert rows == {"seed": ("1", "2"), "arm.judge": ("null", "–"), "arm.judge.source": ("–", "oracle")}
    rows = {row.key: row.values for row in differing([side(one, *arms), side(two, *other)])}
    assert rows == {
        "seed": ("1", "2"),
        "arms.full.judge": ("null", "–"),
        "arms.full.judge.source": ("–", "oracle"),
    }
    del other["full.judge"]
    assert not any(
        "full.judge." in row.key and "adapt" in row.key for row in differing([side(one, *arms), side(two)])
    )
