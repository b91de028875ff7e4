"""A whole training on web pages whose models are shown pictures. The models are small and have random weights."""

from __future__ import annotations

import pytest
from seen_run_cases import (
    CHANGES,
    both_models_learned,
    is_computed_again,
    is_measured_and_replayed,
    is_the_same_after_a_kill,
    recorded,
    shows_what_was_recorded,
    trained,
)
from stage_cases import ROOT

from rlanything.config import parse
from rlanything.core.types import Status
from rlanything.planning import compose

pytestmark = [pytest.mark.long, pytest.mark.integration]
SCREEN = (160, 210)
SAID = (
    '{"action_type": "CLICK", "x": 30, "y": 62}',
    "click 1",
    "nothing that could be done",
    "press tab",
)
WEB = (
    *CHANGES,
    "env=web",
    "env.text=plain",
    "env.habits={}",
    "rollout.max_steps=2",
    "evaluate.max_steps=1",
    f"env.screen=[{SCREEN[0]},{SCREEN[1]}]",
)


@pytest.fixture(scope="module")
def composed():
    """The configuration, as data."""
    found = compose.compose([*WEB], ROOT)
    found["env"] |= {"kinds": ["click-test-2", "click-button"], "ood_kinds": ["click-link"]}
    return found


@pytest.fixture(scope="module")
def run(composed, tmp_path_factory, installed):
    """The folder of a run of one iteration."""
    with trained(tmp_path_factory.mktemp("web"), composed, "web", SAID) as made:
        yield made


@pytest.fixture(scope="module")
def trajectories(run):
    return recorded(run)


def test_pages_are_recorded_step_by_step_and_shown(run, trajectories):
    assert {trajectory.status for trajectory in trajectories} <= {Status.OK, Status.TRUNCATED}
    shows_what_was_recorded(run, trajectories, SCREEN)


def test_training_computes_the_log_probs_that_were_recorded(run, trajectories):
    is_computed_again(run, trajectories)


def test_both_models_learned(run):
    both_models_learned(run)


def test_it_is_evaluated_and_its_pages_are_played_again(run, composed):
    is_measured_and_replayed(run, parse(composed), play=True)


def test_a_training_that_is_killed_goes_on_to_the_same_bytes(run, composed, tmp_path):
    is_the_same_after_a_kill(run, parse(composed), tmp_path)
