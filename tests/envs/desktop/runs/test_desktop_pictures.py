"""A whole training on a desktop whose models are shown its pictures: rollouts, records, what training computes.

The desktop is the bridge over a stand-in for OSWorld's package; the models are small and have random weights.
"""

from __future__ import annotations

import pytest
from desktop_cases import BRIDGE, SCREEN, content, extended, write
from seen_run_cases import (
    CHANGES,
    both_models_learned,
    is_computed_again,
    is_the_same_after_a_kill,
    recorded,
    shows_what_was_recorded,
    trained,
)
from stage_cases import ROOT

from rlanything.config import parse
from rlanything.planning import compose

pytestmark = [pytest.mark.long, pytest.mark.integration]
SAID = ("type 0 one", "press ctrl+s", "click 2", "done")
PLAIN = {"func": "typed", "expected": "one"}
APPS = {
    "os": [extended(name) for name in ("e1", "e2", "e3")],
    "chrome": [content("c1", PLAIN)],
    "multi_apps": [content("m1", PLAIN), content("m2", PLAIN)],
}
DESKTOP = (
    *CHANGES,
    "env=osworld",
    f"env.screen=[{SCREEN[0]},{SCREEN[1]}]",
    "env.worlds=4",
    "env.timeout=60",
    "evaluate.labels=judge",
    "+evaluate.judges={one: {path: checkpoints/vl, votes: 1, max_tokens: 4}}",
)


@pytest.fixture(scope="module")
def composed(tmp_path_factory):
    """The configuration, as data."""
    found = compose.compose([*DESKTOP], ROOT)
    files = write(tmp_path_factory.mktemp("osworld"), APPS)
    found["env"] |= {"data": str(files), "command": [*BRIDGE]}
    return found


@pytest.fixture(scope="module")
def run(composed, tmp_path_factory):
    """The folder of a run of one iteration."""
    with trained(tmp_path_factory.mktemp("desktop"), composed, "desktop", SAID) as made:
        yield made


@pytest.fixture(scope="module")
def trajectories(run):
    return recorded(run)


def test_the_screen_is_recorded_step_by_step_and_shown(run, trajectories):
    shows_what_was_recorded(run, trajectories, SCREEN)


def test_training_computes_the_log_probs_that_were_recorded(run, trajectories):
    is_computed_again(run, trajectories)


def test_both_models_learned(run):
    both_models_learned(run)


def test_a_training_that_is_killed_goes_on_to_the_same_bytes(run, composed, tmp_path):
    is_the_same_after_a_kill(run, parse(composed), tmp_path)
