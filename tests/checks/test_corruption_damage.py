"""How a trajectory is damaged, how answers are counted, and which declarations are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rlanything.checks.corruption.damage import KINDS, Damaged, damage
from rlanything.checks.corruption.declare import Corruption, load_corruption
from rlanything.checks.corruption.measure import Counts, count
from rlanything.config import parse
from rlanything.core.errors import ConfigError
from rlanything.core.types import Status, Step, Trajectory
from rlanything.planning import compose
from rlanything.rewards.step_votes.labels import LabelledTrajectory

ROOT = Path(__file__).parents[2]
OWN = ROOT / "experiments" / "check" / "corruption.yaml"


def trajectory(task: str, actions: str, rollout: int = 0) -> Trajectory:
    steps = tuple(
        Step((k,), (9,), (-0.5,), (), a, True, f"{task} saw {a}", f"prompt {k}", f"said {a}")
        for k, a in enumerate(actions)
    )
    return Trajectory(task, 0, rollout, 1, "start", steps, 1, Status.OK)


@st.composite
def panels(draw):
    actions = st.text("abc", min_size=1, max_size=6)
    return [trajectory(task, draw(actions), k) for task in "xyz" for k in range(draw(st.integers(1, 2)))]


@given(panels(), st.sampled_from(sorted(KINDS)), st.integers(0, 99))
def test_the_damage_is_where_it_is_said_to_be_and_nowhere_else(panel, kind, seed):
    for before, found in zip(panel, damage(kind, panel, seed), strict=True):
        if found is None:
            assert kind != "observation"
            assert len({step.action for step in before.steps}) == 1
            continue
        after = found.trajectory
        assert replace(after, steps=()) == replace(before, steps=())
        changed = [k for k, (a, b) in enumerate(zip(before.steps, after.steps, strict=True)) if a != b]
        assert tuple(changed) == found.steps
        assert [step.prompt_text for step in after.steps] == [step.prompt_text for step in before.steps]


def test_pictures_go_with_their_answer_and_those_of_a_prompt_stay():
    panel = [
        replace(
            t,
            steps=tuple(
                replace(s, images=(f"{t.task_id} {s.action}",), prompt_images=(s.prompt_text,))
                for s in t.steps
            ),
        )
        for t in (trajectory("x", "ab"), trajectory("y", "cd"))
    ]
    for kind in KINDS:
        for before, found in zip(panel, damage(kind, panel, 3), strict=True):
            assert found is not None
            after = found.trajectory.steps
            assert [s.prompt_images for s in after] == [s.prompt_images for s in before.steps]
            if kind == "action":
                assert [s.images for s in after] == [s.images for s in before.steps]
            else:
                assert all(f"{s.images[0][0]} saw {s.images[0][2]}" == s.observation for s in after)
                assert [s.images for s in after] != [s.images for s in before.steps]


@given(panels(), st.integers(0, 99))
def test_each_kind_changes_what_it_says(panel, seed):
    seen_in = {(t.task_id, step.observation) for t in panel for step in t.steps}
    for kind in KINDS:
        for before, found in zip(panel, damage(kind, panel, seed), strict=True):
            if found is None:
                continue
            old, new = ([t.steps[k] for k in found.steps] for t in (before, found.trajectory))
            said = [[(s.action, s.response_text) for s in steps] for steps in (old, new)]
            seen = [[s.observation for s in steps] for steps in (old, new)]
            if kind == "swapped":
                assert said[0] == said[1][::-1]
                assert seen[0] == seen[1][::-1]
            elif kind == "observation":
                assert said[0] == said[1]
                assert any(text == seen[1][0] for task, text in seen_in if task != before.task_id)
            else:
                assert seen[0] == seen[1]
                assert said[1][0] in [(s.action, s.response_text) for s in before.steps]


@given(panels(), st.sampled_from(sorted(KINDS)), st.integers(0, 99))
def test_the_damage_of_a_trajectory_does_not_depend_on_the_order(panel, kind, seed):
    found = damage(kind, panel, seed)
    assert damage(kind, panel[::-1], seed)[::-1] == found


def test_answers_are_counted_at_the_damage_and_after_it():
    panel = [LabelledTrajectory(trajectory("x", "abcde"), (True, True, None, False, True))]
    damaged = [Damaged(trajectory("x", "abcde"), (1,))]
    found = count(panel, damaged, [[1, 1, -1, -1, 1]], [[-1, -1, -1, 1, 1]])
    assert found == {
        "x": Counts(noticed=(1, 1), before=(0, 1), later=(1, 2), undisturbed=(2, 2))  # step 2 has no label
    }


def test_steps_that_were_not_asked_about_do_not_count():
    panel = [LabelledTrajectory(trajectory("x", "abc"), (True, True, True))]
    damaged = [Damaged(trajectory("x", "abc"), (0, 1))]
    found = count(panel, damaged, [[1, 1, 1]], [[-1]])
    assert found == {"x": Counts(noticed=(1, 1), before=(0, 1))}


def test_every_key_stands_in_the_projects_own():
    assert set(yaml.safe_load(OWN.read_text())) == set(Corruption.model_fields)
    assert load_corruption(OWN).asked(parse(compose.compose([], ROOT))) == ("base", "policy_reward", "full")


@pytest.mark.parametrize(
    ("changes", "overrides", "expected"),
    [
        ({"kinds": ["swaped"]}, [], "kinds: 'swaped': unknown; did you mean 'swapped'?"),
        ({"kinds": ["action", "action"]}, [], "kinds: 'action' is there twice"),
        ({"arms": ["base"]}, [], "'base' is a control and no arm"),
        ({"arms": ["policy"]}, [], "'policy' trains no reward model"),
        ({"arms": ["ful"]}, [], "did you mean 'full'?"),
        ({"panel": "reward_panl"}, [], "panel = 'reward_panl': unknown; did you mean 'reward_panel'?"),
        ({"seeds": 99}, [], "seeds = 99: train.seeds = 4 were trained"),
        ({}, ["env=coding"], "the check needs a reward model that votes on steps"),
        ({}, ["~arms.full", "~arms.policy_reward"], "no arm of the configuration trains a reward model"),
    ],
)
def test_a_bad_declaration_is_refused_with_the_key_and_what_is_allowed(
    tmp_path, changes, overrides, expected
):
    file = tmp_path / "corruption.yaml"
    file.write_text(yaml.safe_dump({**yaml.safe_load(OWN.read_text()), **changes}))
    with pytest.raises(ConfigError) as caught:
        load_corruption(file).check(parse(compose.compose(overrides, ROOT)))
    assert expected in str(caught.value)
