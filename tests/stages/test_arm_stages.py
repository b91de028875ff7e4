"""Arms of all kinds in the real loop: trained, killed and resumed, replayed, evaluated, reported."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from stage_cases import contents, lines, small

from rlanything.core.errors import ConfigError
from rlanything.files.records import read_lines
from rlanything.loop.iteration import Loop
from rlanything.report import figures
from rlanything.repro import replay_report
from rlanything.runs.layout import Layout
from rlanything.stages import evaluate, report, train

pytestmark = pytest.mark.integration

ARMS = ("dynamic_sampling", "step_only")
CONFIG = small(*(f"+arm@arms.{name}={name}" for name in ARMS), "signals.policy_max=0.9")


def copy(project: Path, to: Path) -> Path:
    return shutil.copytree(project, to, symlinks=True)


@pytest.fixture(scope="module")
def trained(tiny_project, tmp_path_factory) -> Path:
    """A project in which `outcome`, `dynamic_sampling`, `full` and `step_only` are trained."""
    root = copy(tiny_project, tmp_path_factory.mktemp("arms") / "project")
    for arm in ("outcome", "dynamic_sampling", "full", "step_only"):
        train.train_arm(CONFIG, root, arm)
    return root


@pytest.mark.parametrize("row", ['{"iteration": 3, "accepted_total": Infinity}', '{"iteration": 3}', ""])
def test_a_run_that_says_no_number_of_accepted_tasks_is_named(tmp_path, row):
    layout = Layout(tmp_path)
    layout.run("full", 0).mkdir(parents=True)
    (layout.run("full", 0) / "metrics.jsonl").write_text(row)
    with pytest.raises(ConfigError, match=r"seed-0/metrics\.jsonl:\d: iteration .*'accepted_total' is "):
        evaluate._accepted(layout, "full", 0)


def episodes(root: Path, arm: str) -> list[dict]:
    folder = Layout(root).run(arm, 0) / "rollouts"
    return [record for path in sorted(folder.iterdir()) for record in read_lines(path, "train")]


def learned(root: Path, arm: str) -> list[list[float]]:
    return [r["lesson"]["policy"] for r in episodes(root, arm) if r["lesson"]["policy"] is not None]


def test_outcome_and_dynamic_sampling_give_every_step_of_a_trajectory_one_advantage(trained):
    for arm in ("outcome", "dynamic_sampling"):
        found = learned(trained, arm)
        assert found
        assert all(len(set(x)) == 1 for x in found)


@pytest.mark.parametrize("arm", ["outcome", "dynamic_sampling", "step_only"])
def test_the_run_follows_from_its_rollouts(trained, arm):
    assert replay_report.replay_run(Layout(trained).run(arm, 0), ()).problem == ""
    assert replay_report.replay_run(Layout(trained).run(arm, 0), (), play=True).problem == ""


def test_dynamic_sampling_trains_on_every_task_with_spread_and_on_no_other(trained):
    rows = lines(Layout(trained).run("dynamic_sampling", 0) / "metrics.jsonl")[:-1]
    assert any(row["rolled_out_tasks"] > CONFIG.rollout.tasks for row in rows)
    stored = Layout(trained).run("dynamic_sampling", 0) / "rollouts"
    for path in stored.iterdir():
        tasks: dict[int, list[dict]] = {}
        for record in read_lines(path, "train"):
            tasks.setdefault(record["trajectory"]["slot"], []).append(record)
        for records in tasks.values():
            mixed = len({r["trajectory"]["outcome"] for r in records}) > 1
            assert {r["trains"] for r in records} == {mixed}


@pytest.mark.long
def test_dynamic_sampling_that_was_killed_gives_the_same_bytes(trained, tiny_project, tmp_path, monkeypatch):
    root, collect = copy(tiny_project, tmp_path / "project"), Loop.collect

    def killed(loop, state):
        if state.iteration == 1:
            raise KeyboardInterrupt
        return collect(loop, state)

    with monkeypatch.context() as patch:
        patch.setattr(Loop, "collect", killed)
        with pytest.raises(KeyboardInterrupt):
            train.train_arm(CONFIG, root, "dynamic_sampling")
    train.train_arm(CONFIG, root, "dynamic_sampling")
    assert contents(Layout(root).run("dynamic_sampling", 0)) == contents(
        Layout(trained).run("dynamic_sampling", 0)
    )


@pytest.mark.parametrize("arm", ["outcome", "dynamic_sampling", "full", "step_only"])
def test_tokens_before_an_iteration_are_those_sampled_in_all_that_went_before(trained, arm):
    rows, total = lines(Layout(trained).run(arm, 0) / "metrics.jsonl"), 0.0
    stored = episodes(trained, arm)
    sampled = sum(len(s["response"]) for r in stored for s in r["trajectory"]["steps"])
    sampled += sum(len(v["response"]) for r in stored for j in r["judgements"] for v in j["votes"])
    for row in rows:
        assert row["tokens_before"] == total
        total += row.get("policy_tokens", 0.0) + row.get("reward_tokens", 0.0)
    assert rows[-1]["tokens_before"] == total == sampled


def test_votes_alone_come_from_the_reward_model_that_full_has_trained(trained):
    first = lines(Layout(trained).run("step_only", 0) / "metrics.jsonl")[0]
    last = lines(Layout(trained).run("full", 0) / "metrics.jsonl")[-1]
    assert first["panel/rm_process"] == last["panel/rm_process"]
    assert not (Layout(trained).run("step_only", 0) / "checkpoints" / "reward").exists()


def test_step_only_is_refused_by_name_before_full_is_trained(tiny_project, tmp_path):
    root = copy(tiny_project, tmp_path / "project")
    with pytest.raises(
        ConfigError,
        match="checkpoints/reward: no such folder; train first with `rlanything train --arm full`",
    ):
        train.train_arm(CONFIG, root, "step_only")
    assert not (root / ".rla" / "live").exists()


@pytest.mark.long
def test_every_arm_has_its_row_in_the_report(trained, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(figures, "PAPER", {})  # PDF takes most of drawing, and tests/report look at it
    root = copy(trained, tmp_path / "project")
    for arm in ("base", "outcome", "dynamic_sampling", "full", "step_only"):
        evaluate.evaluate_arm(CONFIG, root, arm)
    report.write_report(CONFIG, root)
    summary = json.loads((root / "report" / "summary.json").read_text())
    assert list(summary) == ["base", "outcome", "dynamic_sampling", "step_only", "full"]
    assert summary["step_only"]["rm_process"]["mean"] == summary["full"]["rm_process"]["mean"]
    assert summary["step_only"]["rm_process"] != summary["base"]["rm_process"]
    page = (root / "report" / "report.md").read_text()
    assert "Accuracy at equal tokens" in page
    assert page.count("| `step_only` |") >= 4
    capsys.readouterr()
