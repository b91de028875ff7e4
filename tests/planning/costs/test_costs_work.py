"""The work of a plan and its time: calls, what devices share, and what is assumed."""

from __future__ import annotations

import pytest
from costs_cases import ROOT, SMALL, configuration, planned

from rlanything.core.errors import ConfigError
from rlanything.planning import plan
from rlanything.planning.costs import devices
from rlanything.planning.costs.assumptions import Assumptions


@pytest.mark.parametrize("arm", ["outcome", "policy", "policy_reward", "full"])
def test_the_calls_are_those_of_the_counts(arm):
    config = configuration()
    counts = plan.plan_arm(config, ROOT, arm)
    calls = {c.name: c.count for c in planned(given=Assumptions(), arm=arm).work.calls}
    iterations = config.train.iterations
    assert calls["act"] * iterations == (counts.rollouts + counts.proposals) * config.rollout.max_steps
    assert calls.get("judge", 0) * iterations == counts.replies
    assert ("adapt" in calls) == config.arm(arm).adapt


def test_the_coding_experiment_can_be_planned():
    found = planned("env=coding_data", given=Assumptions(reply_share=0.25))
    calls = {c.name: c for c in found.work.calls}
    assert calls["act"].count == 2 * 64 * 32
    assert all(c.read >= 0 and c.longest > 0 for c in found.work.calls)


def test_twice_the_devices_halve_the_time_of_what_they_share():
    one, two = planned(*SMALL), planned(*SMALL, count=2)
    assert two.hours.phases["learn, policy"] == pytest.approx(one.hours.phases["learn, policy"] / 2)
    assert two.hours.hours < one.hours.hours


def test_shorter_episodes_and_replies_take_less_of_everything():
    long, short = planned(given=Assumptions(0.5, 0.5)), planned(given=Assumptions(0.25, 0.25))
    assert short.memory.peak < long.memory.peak
    assert short.hours.hours < long.hours.hours
    pairs = list(zip(short.work.calls, long.work.calls, strict=True))
    assert all(a.written < b.written for a, b in pairs)
    # The adapter reads facts and a critic's sentences, whose lengths do not follow from episodes.
    assert [a.name for a, b in pairs if a.read >= b.read] == ["adapt"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("episode_share", 0.0),
        ("reply_share", 1.5),
        ("turn_tokens", 0),
        ("opening_tokens", -1),
        ("rewritten_share", 2),
    ],
)
def test_an_assumption_that_cannot_be_is_refused(name, value):
    with pytest.raises(ConfigError, match=f"--{name.replace('_', '-')} {value}: must be"):
        Assumptions(**{name: value}).check()


def test_a_device_is_found_by_its_name_and_a_wrong_one_gets_the_nearest():
    assert devices.device("h100").memory == 80 * devices.GB
    with pytest.raises(ConfigError, match=r"--device 'H10': unknown; did you mean 'H100'\?"):
        devices.device("H10")
