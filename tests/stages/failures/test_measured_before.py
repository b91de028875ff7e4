"""An evaluation never stands beside what it was not measured with: what replaces that by hand removes it.

Base models are replaced in test_chaos_bootstrap.py."""

from __future__ import annotations

import golden_cases as golden
import pytest

from rlanything.files import atomic
from rlanything.files.records import write_json
from rlanything.runs.folder import RunFolder
from rlanything.runs.layout import Layout
from rlanything.stages import tasks, train
from rlanything.stages.missing import missing_runs

MEASURED = ("base", "outcome", "full", "step_only", "policy_reward")


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.delenv("DVC_STAGE", raising=False)
    root = golden.project(tmp_path / "project")
    for arm in MEASURED:
        write_json(Layout(root).evaluation(arm), {"arm": arm})
    return root


def learn(root, arm: str, weights: str, monkeypatch) -> None:
    """Train an arm; its seeds end with these weights."""

    def ended(config, root, origin, arm, seeds) -> None:
        for seed in seeds:
            finished = RunFolder(Layout(root).live(origin.key, arm, seed)).finished
            finished.mkdir(parents=True)
            (finished / "weights").write_text(f"{weights} {seed}")

    with monkeypatch.context() as patch:
        patch.setattr(train, "_train", ended)
        train.train_arm(golden.configuration(), root, arm)


def left(root) -> set[str]:
    return {path.stem for path in (root / "evaluation").glob("*.json")}


def test_another_run_takes_the_evaluation_of_the_arm_and_of_those_that_its_reward_models_judge(
    project, monkeypatch, capsys
):
    arms = golden.configuration().arms
    judged = {name for name in MEASURED if name in arms and arms[name].reward_from == "policy_reward"}
    assert judged, "the golden configuration has such an arm"
    for arm in ("policy_reward", "outcome"):
        learn(project, arm, "first", monkeypatch)
    for arm in MEASURED:
        write_json(Layout(project).evaluation(arm), {"arm": arm})
    capsys.readouterr()
    learn(project, "policy_reward", "second", monkeypatch)
    assert left(project) == {*MEASURED} - {"policy_reward", *judged}
    assert "`rlanything evaluate --arm policy_reward` measures again" in capsys.readouterr().err


def test_what_is_trained_is_measured_again_with_what_it_judges_also_where_an_evaluation_is_there(project):
    """A list that is made once, as that of a check, must hold what a training will remove."""
    config, arms = golden.configuration(), ["base", "policy_reward", "outcome", "step_only"]
    taker = next(name for name in MEASURED if name in config.arms and config.arms[name].reward_from)
    assert config.arms[taker].reward_from in arms
    found = missing_runs(config, project, [*dict.fromkeys([*arms, taker])])
    assert ("evaluate", "--arm", "base") not in found
    for arm in (*arms[1:], taker):
        assert ("evaluate", "--arm", arm) in found


def test_the_same_run_keeps_it(project, monkeypatch):
    learn(project, "outcome", "first", monkeypatch)
    write_json(Layout(project).evaluation("outcome"), {"arm": "outcome"})
    learn(project, "outcome", "first", monkeypatch)
    assert left(project) == {*MEASURED}


def test_it_is_gone_before_the_runs_are_replaced(project, monkeypatch):
    """Killed in between, the old runs have no evaluation, and the new ones none of the old."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    learn(project, "outcome", "first", monkeypatch)
    write_json(Layout(project).evaluation("outcome"), {"arm": "outcome"})
    monkeypatch.setattr(train, "place", killed)
    with pytest.raises(KeyboardInterrupt):
        learn(project, "outcome", "second", monkeypatch)
    assert left(project) == {*MEASURED} - {"outcome"}


def test_dvc_which_removes_the_runs_first_and_knows_what_to_measure_again_is_left_alone(project, monkeypatch):
    monkeypatch.setenv("DVC_STAGE", "train@outcome")
    learn(project, "outcome", "first", monkeypatch)
    assert left(project) == {*MEASURED}


def test_other_tasks_take_every_evaluation_and_the_same_ones_keep_it(project, monkeypatch, capsys):
    config = golden.configuration(tasks__train=7)
    tasks.make_tasks(config, project)
    assert left(project) == set()
    said = capsys.readouterr().err
    assert "tasks: " in said
    first, arm = "with other tasks; `rlanything bootstrap` and then", "--arm outcome` "
    assert f"{first} `rlanything train {arm}and then `rlanything evaluate {arm}measure again" in said
    assert f"{first} `rlanything evaluate --arm base` measure again" in said
    write_json(Layout(project).evaluation("base"), {"arm": "base"})
    tasks.make_tasks(config, project)
    assert left(project) == {"base"}
    monkeypatch.setenv("DVC_STAGE", "tasks")
    tasks.make_tasks(golden.configuration(tasks__train=8), project)
    assert left(project) == {"base"}


def test_evaluations_are_gone_before_other_tasks_are_there(project, monkeypatch):
    before = (project / "data" / "tasks" / "manifest.json").read_bytes()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(atomic, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        tasks.make_tasks(golden.configuration(tasks__train=7), project)
    assert (project / "data" / "tasks" / "manifest.json").read_bytes() == before
    assert left(project) == set()
