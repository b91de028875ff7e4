"""What a plan counts outside the iterations: small cases that were worked out by hand.

With a history a prompt of the policy has 40, 49, 58 tokens at its three steps (an opening of 40; 6 of an observation
and 3 of a command more at each step), and a question about a step 36 more (20 + 7 + 3 + 6).
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rlanything.cli import main
from rlanything.config import Config, parse
from rlanything.core.errors import ConfigError
from rlanything.planning import compose
from rlanything.planning.costs.assumptions import Assumptions
from rlanything.planning.costs.devices import CPU, Device
from rlanything.planning.costs.estimate import Estimate, estimate, model_sizes
from rlanything.planning.costs.hours import stage_hours
from rlanything.planning.costs.sizes import DECLARED, Size
from rlanything.planning.costs.work.measuring import Measuring, StageWork
from rlanything.planning.costs.work.workload import Calls

ROOT = Path(__file__).parents[3]
SMALL = [
    "scale=paper",
    *(f"rollout.{key}" for key in ("max_steps=2", "max_tokens=7", "tasks=16")),
    *(f"judge.{key}" for key in ("max_tokens=9", "m=3")),
    *(
        f"tasks.panels.{key}"
        for key in ("in_domain.tasks=3", "out_of_domain.tasks=2", "reward_panel.tasks=2")
    ),
    *(f"evaluate.{key}" for key in ("max_steps=3", "repeats=2", "votes=5", "reward_rollouts=4")),
    *(f"evaluate.{key}" for key in ("every=2", "curve_tasks=2", "curve_rollouts=1")),
    *(f"train.{key}" for key in ("iterations=3", "seeds=2")),
]
STRONG = [
    "evaluate.labels=judge",
    "+evaluate.judges.strong.path=Qwen/Qwen2.5-14B-Instruct",
    "+evaluate.judges.strong.max_tokens=30",
]
GIVEN = Assumptions(opening_tokens=40, turn_tokens=10, past_tokens=6, guide_tokens=20, action_tokens=3)
POSITIONS = {"policy": 4096, "reward": 4096, "adapter": 16384, "judge strong": 4096, "solver": 4096}


def configuration(*overrides: str) -> Config:
    return parse(compose.compose([*SMALL, *overrides], ROOT))


def measuring(*overrides: str, given: Assumptions = GIVEN) -> Measuring:
    return Measuring(configuration(*overrides), {**POSITIONS, "reward_policy": 4096}, given)


def counted(stages: tuple[StageWork, ...]) -> dict[str, list[tuple[str, float, float, float]]]:
    """Stage -> (model, calls, tokens read, tokens written) of each kind of calls, once."""
    return {stage.name: [(c.model, c.count, c.read, c.written) for c in stage.calls] for stage in stages}


def test_bootstrap_makes_the_reward_panel_asks_about_it_once_and_plays_each_panel_once():
    assert counted(measuring().shared())["bootstrap"] == [
        ("policy", 8 * 2, 8 * 89, 8 * 2 * 7),
        ("reward", 8 * 2 * 3, 8 * 3 * 161, 8 * 2 * 3 * 9),
        ("policy", 3 * 3, 3 * 147, 3 * 3 * 7),
        ("policy", 2 * 3, 2 * 147, 2 * 3 * 7),
    ]


def test_the_final_evaluation_repeats_the_panels_and_asks_for_its_own_number_of_votes():
    expected = [
        ("policy", 6 * 3, 6 * 147, 6 * 3 * 7),
        ("policy", 4 * 3, 4 * 147, 4 * 3 * 7),
        ("reward", 8 * 2 * 5, 8 * 5 * 161, 8 * 2 * 5 * 9),
    ]
    found = measuring()
    assert counted(found.shared())["evaluate base"] == expected
    assert counted(found.of_arm("full"))["evaluate"] == expected


@pytest.mark.parametrize(
    ("arm", "judged"), [("full", 3), ("policy_reward", 3), ("policy", 1), ("outcome", 1)]
)
def test_a_curve_has_a_point_every_so_often_and_at_the_end(arm, judged):
    policy, reward, _ = measuring().of_arm(arm)
    assert (policy.times, reward.times) == (3, judged)  # iterations 0, 2 and the end, which is 3
    assert counted((policy, reward)) == {
        "curves, policy": [("policy", 6, 2 * 147, 42), ("policy", 6, 2 * 147, 42)],
        "curves, reward": [("reward", 12, 2 * 3 * 161, 108)],
    }


def test_judges_label_every_step_with_their_own_votes_and_lengths():
    assert [stage.name for stage in measuring().shared()] == ["bootstrap", "evaluate base"]
    assert counted(measuring(*STRONG).shared())["label"] == [
        ("judge strong", 8 * 2 * 8, 8 * 8 * 161, 8 * 2 * 8 * 30)
    ]


def test_another_policys_trajectories_are_made_before_they_are_labelled():
    found = counted(measuring("+evaluate.reward_policy.path=runs/full/seed-0/checkpoints/policy").shared())
    assert found["label"] == [("reward_policy", 8 * 2, 8 * 89, 8 * 2 * 7)]


def test_a_solver_that_is_a_model_tries_every_task_that_may_be_accepted():
    solver = ["+evaluate.solver.path=Qwen/Qwen2.5-14B-Instruct", "evaluate.solver_tries=4"]
    found = measuring(*solver, given=replace(GIVEN, rewritten_share=0.5))
    episodes = 3 * 16 * 0.5 * 4
    assert counted(found.of_arm("full"))["evaluate"][-1] == (
        "solver", episodes * 3, episodes * 147, episodes * 3 * 7,
    )  # fmt: skip
    assert len(counted(found.of_arm("policy"))["evaluate"]) == 3


def test_a_solver_and_another_policy_may_have_longer_replies_than_the_policy():
    solver = ["+evaluate.solver={path: Qwen/Qwen2.5-14B-Instruct, max_tokens: 70}", "evaluate.solver_tries=4"]
    name, count, _, written = counted(measuring(*solver).of_arm("full"))["evaluate"][-1]
    assert (name, written) == ("solver", 70 * count)
    path = "path: runs/full/seed-0/checkpoints/policy"
    found = counted(measuring(f"+evaluate.reward_policy={{{path}, max_tokens: 70}}").shared())["label"]
    assert [(name, written / count) for name, count, _, written in found] == [("reward_policy", 70)]


def test_tests_are_asked_for_once_a_problem_in_every_stage():
    """On every panel that measures the reward model: the paper's coding experiment has three."""
    panels = ("LiveBench", "LiveCodeBench-V2", "CodeContests")
    sizes = ["evaluate.repeats=2", *(f"tasks.panels.{name}.tasks=2" for name in panels)]
    config = parse(
        compose.compose(["scale=paper", "env=coding_data", *sizes, "evaluate.curve_tasks=1"], ROOT)
    )
    found = Measuring(config, POSITIONS, GIVEN)
    assert config.tasks.reward_panels == config.tasks.policy_panels == panels
    assert [calls.count for calls in found.shared()[0].calls] == [6 * 16, 6 * 32, 2, 2, 2]
    assert [calls.count for calls in found.of_arm("full")[1].calls] == [3 * 32]


def test_the_cooled_base_tries_its_temperatures_once_and_plays_the_panels_with_every_seed():
    tried = "evaluate.cooling={temperatures: [1.0, 0.5, 0.0], tasks: 4, repeats: 2}"
    cooling, panels = measuring(tried).shared()[-2:]
    assert (cooling.every_seed, panels.every_seed) == (False, True)
    assert counted((cooling, panels)) == {
        "cooling": [("policy", 24 * 3, 24 * 147, 24 * 3 * 7)],
        "evaluate base_cooled": [
            ("policy", 6 * 3, 6 * 147, 6 * 3 * 7),
            ("policy", 4 * 3, 4 * 147, 4 * 3 * 7),
        ],
    }


SIZE = Size(
    parameters=10, layers=1, hidden=1, intermediate=1, heads=1, kv_heads=1, attention=1, kv=1, vocab=1,
    positions=4096, tied=True, normed_heads=False, source="",
)  # fmt: skip
ROUND = Device(CPU, 1000, 100.0, 50.0, 10.0, "by hand", of_flops=1.0, of_bandwidth=1.0)
CALLS = Calls("c", "policy", count=6, at_once=4, read=100, written=20, longest=5)
"""With 10 parameters in float32: 40 s to read (2 x 10 x 100 / 50), and 5 steps of 4 rows, each of which moves 40 bytes
of weights and 160 of keys and values in 20 s."""


def by_hand(
    *, every_seed: bool, training: bool = False, workers: int = 1, devices: int = 1, times: int = 1
) -> float:
    overrides = ["train.precision=32-true", "engine.max_batch=64", f"train.workers={workers}"]
    stage = StageWork("s", (CALLS,), times, every_seed, training)
    config = configuration(*overrides)
    return 3600 * stage_hours(config, stage, ("policy",), {"policy": SIZE}, ROUND, devices, {"policy": 1.0})


def test_the_seconds_of_a_stage_are_those_worked_out_by_hand():
    assert by_hand(every_seed=False) == pytest.approx(40 + 5 * 20)
    assert by_hand(every_seed=True) == pytest.approx(2 * 140)
    assert by_hand(every_seed=True, workers=2) == pytest.approx(140)
    assert by_hand(every_seed=False, times=3) == pytest.approx(3 * 140)


@pytest.mark.parametrize("training", [False, True])
def test_devices_divide_a_measurement(training):
    # Two rows on each of two devices: 5 steps of 4 + 8 s.
    assert by_hand(every_seed=False, devices=2, training=training) == pytest.approx(20 + 5 * 12)


def planned(*overrides: str, arm: str = "full") -> Estimate:
    config = configuration(*overrides)
    return estimate(config, arm, model_sizes(config, ROOT), replace(ROUND, name="round"), 1, GIVEN)


def test_the_hours_of_all_stages_add_up_and_an_arm_without_rewards_takes_fewer():
    full, outcome = planned(), planned(arm="outcome")
    names = [stage.work.name for stage in full.stages]
    assert names == [
        "bootstrap",
        "evaluate base",
        "iterations",
        "curves, policy",
        "curves, reward",
        "evaluate",
    ]
    by_name = {stage.work.name: stage for stage in full.stages}
    assert by_name["iterations"].hours == full.hours.hours
    assert by_name["iterations"].times == 3 * 2
    assert by_name["bootstrap"].times == 1
    assert full.all_hours == pytest.approx(sum(stage.hours for stage in full.stages))
    assert outcome.all_hours < full.all_hours
    shared = [[s.hours for s in found.stages if s.shared] for found in (full, outcome)]
    assert shared[0] == shared[1]


def test_a_checkpoint_that_an_arm_will_make_has_the_size_of_its_role():
    made = "+evaluate.reward_policy.path=runs/full/seed-0/checkpoints/policy"
    sizes = model_sizes(configuration(made, *STRONG), ROOT)
    assert sizes["reward_policy"] == sizes["policy"]
    assert sizes["judge strong"] == sizes["reward"]


def test_a_model_that_goes_on_from_a_trained_checkpoint_has_the_size_of_its_file(tmp_path):
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    made = "runs/full/seed-0/checkpoints/policy"
    config = configuration(f"model.policy.path={made}", f"+evaluate.reward_policy.path={made}")
    with pytest.raises(ConfigError, match=f"model.policy.path = {made}: no such folder"):
        model_sizes(config, tmp_path)
    (tmp_path / made).mkdir(parents=True)
    declared = json.loads((ROOT / DECLARED).read_text())["Qwen/Qwen2.5-0.5B-Instruct"]
    (tmp_path / made / "config.json").write_text(json.dumps(declared))
    sizes = model_sizes(config, tmp_path)
    assert sizes["policy"].parameters == sizes["reward_policy"].parameters == 494_032_768


def test_a_judge_of_unknown_size_is_named():
    with pytest.raises(ConfigError, match=r"evaluate\.judges\.strong\.path = nobody/knows"):
        model_sizes(configuration("evaluate.labels=judge", "+evaluate.judges.strong.path=nobody/knows"), ROOT)


def test_the_table_shows_every_stage_and_what_all_arms_share(capsys):
    words = ["plan", *SMALL, *STRONG, "--device", "H100", "--details"]
    assert main(["--root", str(ROOT), *words]) == 0
    shown = capsys.readouterr().out
    assert "judge strong 14,770,033,664 parameters" in shown
    for stage in (
        "bootstrap *",
        "label *",
        "evaluate base *",
        "iterations",
        "curves, policy",
        "curves, reward",
    ):
        assert f"    {stage}  " in shown
    assert "arms, with what they share once:" in shown
