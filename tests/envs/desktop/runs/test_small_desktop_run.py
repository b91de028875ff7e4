"""A whole training on the small desktop: real applications, models of random weights that are shown its screen.

Windows and trees of real programs are not the same twice. So a run that is killed goes on, and its bytes are its own.
"""

from __future__ import annotations

import pytest
from seen_run_cases import (
    CHANGES,
    both_models_learned,
    gone_on,
    is_computed_again,
    is_measured_and_replayed,
    recorded,
    shows_what_was_recorded,
    trained,
)
from stage_cases import ROOT

from envs.desktop.small import box
from rlanything.config import parse
from rlanything.core.types import Status
from rlanything.planning import compose
from rlanything.repro.stored import StoredRun

pytestmark = [
    pytest.mark.slow,
    pytest.mark.integration,
    pytest.mark.xdist_group("desktop"),
    pytest.mark.skipif(bool(box.missing()), reason=box.missing() or "nothing is missing"),
]
SCREEN = (480, 480)
SAID = ("type 0 one", "press ctrl+s", "click 2", "done")
DESKTOP = (
    *CHANGES,
    "env=desktop",
    f"env.screen=[{SCREEN[0]},{SCREEN[1]}]",
    "env.worlds=2",
    "env.timeout=100",
    "rollout.max_steps=2",
    "evaluate.labels=judge",
    "+evaluate.judges={one: {path: checkpoints/vl, votes: 1, max_tokens: 4}}",
)


@pytest.fixture(scope="module")
def composed():
    """The configuration, as data."""
    return compose.compose([*DESKTOP], ROOT)


@pytest.fixture(scope="module")
def run(composed, tmp_path_factory):
    """The folder of a run of one iteration."""
    with trained(tmp_path_factory.mktemp("small"), composed, "desktop", SAID) as made:
        yield made


def test_the_screen_is_recorded_step_by_step_and_shown(run):
    trajectories = recorded(run)
    assert {trajectory.status for trajectory in trajectories} <= {Status.OK, Status.TRUNCATED}
    shows_what_was_recorded(run, trajectories, SCREEN)


def test_both_models_learned_and_training_computes_the_log_probs_that_were_recorded(run):
    both_models_learned(run)
    is_computed_again(run, recorded(run))


def test_a_training_that_is_killed_goes_on_and_is_evaluated_and_replayed(run, composed, tmp_path):
    again = gone_on(run, parse(composed), tmp_path)
    assert [row["iteration"] for row in StoredRun(again).metrics] == [0, 1]
    is_measured_and_replayed(again, parse(composed), play=False)
