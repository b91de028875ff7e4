"""An arm whose judge is the oracle, in the real loop: trained without a reward model, replayed, evaluated, reported."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from stage_cases import lines, small

from rlanything.files.records import read_lines
from rlanything.planning.plan import plan_arm
from rlanything.report.results.evaluations import read_evaluation
from rlanything.repro import replay_report
from rlanything.runs.layout import Layout
from rlanything.stages import evaluate, report, train
from rlanything.stages.declared import STAGES

pytestmark = pytest.mark.integration

CONFIG = small(
    "+arm@arms.perfect=policy",
    "arms.perfect.judge={source: oracle}",
    "+arm@arms.never=policy",
    "arms.never.judge={source: oracle, accuracy: 0.0}",
    "+arm@arms.adapted=policy",
    "arms.adapted.judge={source: oracle, accuracy: 0.8, systematic: 0.5}",
    "arms.adapted.adapt=true",
)
ARMS = ("perfect", "never", "adapted")


@pytest.fixture(scope="module")
def trained(tiny_project, tmp_path_factory) -> Path:
    """A project without its reward model, in which three arms are trained with votes of the oracle."""
    root = tmp_path_factory.mktemp("oracle") / "project"
    shutil.copytree(tiny_project, root, symlinks=True)
    shutil.rmtree(root / "models" / "reward")
    for arm in ARMS:
        train.train_arm(CONFIG, root, arm)
    return root


def votes(root: Path, arm: str) -> list[int]:
    folder = Layout(root).run(arm, 0) / "rollouts"
    episodes = [record for path in sorted(folder.iterdir()) for record in read_lines(path, "train")]
    return [v["verdict"] for e in episodes for j in e["judgements"] for v in j["votes"]]


def test_votes_are_those_of_the_oracle_and_teach_the_policy(trained):
    assert set(votes(trained, "perfect")) <= {1, -1}
    assert votes(trained, "perfect")
    first = [lines(Layout(trained).run(arm, 0) / "metrics.jsonl")[0] for arm in ("perfect", "never")]
    # The first iteration's episodes are the same, so the votes are each other's opposites.
    assert first[0]["mean_vote"] == pytest.approx(-first[1]["mean_vote"])
    assert [row["unanimous"] for row in first] == [1.0, 1.0]
    assert [row["reward_tokens"] for row in first] == [0, 0]
    assert all("panel/rm_process" not in row for row in first)
    assert not (Layout(trained).run("perfect", 0) / "checkpoints" / "reward").exists()


@pytest.mark.parametrize("arm", ARMS)
def test_the_run_follows_from_what_is_stored(trained, arm):
    assert replay_report.replay_run(Layout(trained).run(arm, 0), ()).problem == ""
    assert replay_report.replay_run(Layout(trained).run(arm, 0), (), play=True).problem == ""


def test_a_what_if_counts_the_oracles_votes(trained):
    found = replay_report.replay_run(Layout(trained).run("perfect", 0), ("signals.lambda=4",))
    assert found.problem == ""


@pytest.mark.long
def test_it_is_evaluated_and_reported_without_a_reward_model(trained, tiny_project):
    evaluate.evaluate_arm(CONFIG, trained, "perfect")
    found = read_evaluation(Layout(trained).evaluation("perfect"), "perfect")
    assert {"in_domain", "out_of_domain"} <= set(found)
    assert not [name for name in found if name.startswith("rm_")]
    shutil.copytree(tiny_project / "models" / "reward", trained / "models" / "reward")
    evaluate.evaluate_arm(CONFIG, trained, "base")
    report.write_report(CONFIG, trained)
    assert "perfect" in (trained / "report" / "report.md").read_text()


def test_no_stage_of_the_arm_depends_on_a_reward_model():
    declared = {stage.name: stage.arms(CONFIG) for stage in STAGES if stage.arms is not None}
    assert declared["train"]["perfect"]["judge_model"] == "models/policy"
    assert declared["evaluate"]["perfect"]["reward"] == "models/policy"
    assert (
        declared["train"]["policy"]["judge_model"]
        == declared["evaluate"]["policy"]["reward"]
        == "models/reward"
    )


def test_a_plan_counts_no_reply_of_a_reward_model():
    assert plan_arm(CONFIG, Path(), "perfect").replies == 0
    assert plan_arm(CONFIG, Path(), "policy").replies > 0
