"""Arms whose unit tests the environment's teacher writes, right with a declared probability, in the real loop."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from stage_cases import lines, small_coding

from rlanything.core.errors import ConfigError
from rlanything.core.types import Task
from rlanything.report.results.evaluations import read_evaluation
from rlanything.repro import replay_report
from rlanything.rewards.unit_tests.oracle import OracleTests
from rlanything.rewards.unit_tests.writer import Attempts
from rlanything.runs import build
from rlanything.runs.layout import Layout, read_tasks
from rlanything.stages import evaluate, train

pytestmark = [pytest.mark.long, pytest.mark.integration]

CONFIG = small_coding(
    "+arm@arms.right=policy",
    "arms.right.judge={source: oracle}",
    "+arm@arms.wrong=policy",
    "arms.wrong.judge={source: oracle, accuracy: 0.0}",
    "signals.lambda=1",
)


@pytest.fixture(scope="module")
def trained(coding_project, tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("oracle-tests") / "project"
    shutil.copytree(coding_project, root, symlinks=True)
    shutil.rmtree(root / "models" / "reward")
    for arm in ("right", "wrong"):
        train.train_arm(CONFIG, root, arm)
    return root


@pytest.mark.parametrize(("arm", "share"), [("right", 1.0), ("wrong", 0.0)])
def test_written_tests_are_right_as_often_as_declared_and_the_run_can_be_replayed(trained, arm, share):
    rows = lines(Layout(trained).run(arm, 0) / "metrics.jsonl")[:-1]
    counted = [row["ut"] for row in rows if row["ut"] is not None]
    assert counted
    assert set(counted) == {share}
    assert all(row["tests"] > 0 and row["invalid_tests"] == row["reward_tokens"] == 0 for row in rows)
    assert replay_report.replay_run(Layout(trained).run(arm, 0), ()).problem == ""
    assert replay_report.replay_run(Layout(trained).run(arm, 0), (), play=True).problem == ""


def test_it_is_evaluated_without_a_reward_model(trained):
    evaluate.evaluate_arm(CONFIG, trained, "right")
    found = read_evaluation(Layout(trained).evaluation("right"), "right")
    assert "in_domain" in found
    assert not {"ut", "detect"} & set(found)


def test_a_task_that_the_teacher_does_not_know_has_no_tests_and_a_batch_of_them_is_refused(coding_project):
    known = read_tasks(Layout(coding_project).tasks("train"))[0]
    strange = Task(known.env, "Say nothing.", {**known.payload, "source": {"format": "somebody's"}})
    family = build.family(CONFIG)
    writer = OracleTests(family, CONFIG.judge_for(CONFIG.arm("right")), 2)
    both = [Attempts(task, "", ("print(1)",)) for task in (known, strange)]
    found = writer.examine(both, 0, 0, write=True)
    assert [len(item.tests) for item in found] == [2, 0]
    with pytest.raises(
        ConfigError, match=r"judge\.source = 'oracle': CodingFamily knows a right test for none"
    ):
        writer.examine(both[1:], 0, 0, write=True)
