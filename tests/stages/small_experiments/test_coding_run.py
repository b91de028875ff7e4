"""The whole loop on programs in the real sandbox: what a run leaves, killed and resumed, replayed, measured."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stage_cases import ROOT, contents, lines, small_coding

from envs.coding.family import CodingFamily
from rlanything.cli import main
from rlanything.config import parse
from rlanything.core.coding_signals import generated_advantages, gt_programs
from rlanything.core.errors import ConfigError
from rlanything.core.types import Task
from rlanything.files.records import read_lines
from rlanything.loop.record import EpisodeRecord, NotStored
from rlanything.planning import compose
from rlanything.planning.check import check
from rlanything.repro import replay_report
from rlanything.rewards.unit_tests.evaluation import PanelProblem
from rlanything.rewards.unit_tests.records import StoredTests, UnitTestRecord
from rlanything.rewards.unit_tests.writer import Attempts
from rlanything.runs.folder import RunFolder
from rlanything.runs.layout import Layout
from rlanything.stages import evaluate, train

RUN = Path("runs/full/seed-0")
pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]


def records(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(x) for p in sorted(folder.iterdir()) for x in gzip.decompress(p.read_bytes()).splitlines()
    ]


def copy(project: Path, to: Path) -> Path:
    """A project of one's own with the same inputs and no run."""
    shutil.copytree(project, to, symlinks=True, ignore=shutil.ignore_patterns("runs", ".rla", "provenance"))
    return to


def test_a_run_holds_every_written_test_and_what_every_program_did(coding_project):
    stored = [UnitTestRecord.from_json(r) for r in records(coding_project / RUN / "tests")]
    episodes = [EpisodeRecord.from_json(r) for r in records(coding_project / RUN / "rollouts")]
    config = small_coding()
    assert len(stored) >= config.train.iterations * config.rollout.tasks
    outcomes: dict[tuple[int, str], list[bool]] = {}
    for e in episodes:
        key = e.episode.trajectory.slot, e.episode.trajectory.task_id
        outcomes.setdefault(key, []).append(e.episode.trajectory.outcome == 1)
    for tests in stored:
        tables = tests.examined.tables
        assert len(tables.tests) == len(tests.examined.tests) == config.judge.m
        assert gt_programs(tables.dataset) == outcomes[tests.slot, tests.task_id]
    assert any(test.readable for tests in stored for test in tests.examined.tests)


def test_a_run_reports_its_test_writer(coding_project):
    rows = lines(coding_project / RUN / "metrics.jsonl")
    assert all({"tests", "invalid_tests", "ut", "detect"} <= set(row) for row in rows[:-1])
    assert all({"panel/in_domain", "panel/ut", "panel/detect"} <= set(row) for row in rows)
    assert not any("mu" in row or "panel/rm_process" in row for row in rows)


def test_the_reward_panel_holds_each_problem_with_its_solution_and_the_policys_programs(coding_project):
    lines_ = read_lines(Layout(coding_project).reward_panel("reward_panel"), "rlanything bootstrap")
    panel = [PanelProblem.from_json(line) for line in lines_]
    config = small_coding()
    assert len(panel) == config.tasks.panels["reward_panel"].tasks
    for item in panel:
        assert len(item.programs) == len(item.dataset) == config.evaluate.reward_rollouts + 1
        assert gt_programs(item.dataset)[-1]


@pytest.mark.long
def test_a_run_that_is_killed_at_every_iteration_ends_with_the_same_bytes(
    coding_project, tmp_path, monkeypatch
):
    root = copy(coding_project, tmp_path / "project")
    publish = RunFolder.publish

    def publish_and_die(self, iteration, write):
        publish(self, iteration, write)
        raise KeyboardInterrupt

    monkeypatch.setattr(RunFolder, "publish", publish_and_die)
    for _ in range(small_coding().train.iterations + 1):
        with pytest.raises(KeyboardInterrupt):
            train.train_arm(small_coding(), root, "full")
    monkeypatch.setattr(RunFolder, "publish", publish)
    train.train_arm(small_coding(), root, "full")
    assert contents(root / RUN) == contents(coding_project / RUN)


def test_an_evaluation_measures_programs_and_tests_and_comes_out_the_same_twice(coding_project, tmp_path):
    root = tmp_path / "project"
    shutil.copytree(coding_project, root, symlinks=True)
    found = []
    for _ in range(2):
        evaluate.evaluate_arm(small_coding(), root, "full")
        found.append(json.loads(Layout(root).evaluation("full").read_text())["seeds"]["0"])
    assert found[0] == found[1]
    config = small_coding()
    panels = {"in_domain", "out_of_domain", "episode_steps", "success_within"}
    solvable = {"solvable"} if found[0]["accepted_tasks"] else set()
    assert set(found[0]) == panels | {"ut", "detect", "accepted_tasks"} | solvable
    assert len(found[0].get("solvable", {})) == found[0]["accepted_tasks"]
    assert [len(tries) for tries in found[0]["in_domain"].values()] == [config.evaluate.repeats] * 2
    assert [of for _, of in found[0]["ut"].values()] == [config.evaluate.votes] * config.tasks.panels[
        "reward_panel"
    ].tasks


def edit(root: Path, kind: str, change: Callable[[dict[str, Any]], bool]) -> None:
    """Rewrite the stored records of the first iteration; `change` says whether it changed one, and is asked no more."""
    path = root / RUN / kind / "iter_0001.jsonl.gz"
    found = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert any(change(record) for record in found), "nothing to change"
    path.write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in found).encode()))


@pytest.fixture
def kept(coding_project, tmp_path) -> Path:
    """A copy of the finished run and its record, without models and tasks."""
    for name in ("runs", "provenance"):
        shutil.copytree(coding_project / name, tmp_path / name)
    return tmp_path


def test_a_run_is_replayed_without_models_and_sandbox(kept, monkeypatch):
    monkeypatch.setattr(CodingFamily, "sandbox", None)
    assert replay_report.replay_run(kept / RUN, []).problem == ""


def test_a_run_is_played_again_in_the_sandbox(coding_project):
    assert replay_report.replay_run(coding_project / RUN, [], play=True).problem == ""


def test_a_turned_verdict_of_a_written_test_is_found(kept):
    def turn(record: dict[str, Any]) -> bool:
        """The first verdict on which the lesson of the writer depends."""
        tables, stored = UnitTestRecord.from_json(record).examined.tables, record["examined"]["tables"]
        before = generated_advantages(tables.dataset, tables.generated, tables.readable)
        for row in stored["generated"]:
            for k in range(len(row)):
                row[k] ^= True
                if generated_advantages(tables.dataset, stored["generated"], tables.readable) != before:
                    return True
                row[k] ^= True
        return False

    edit(kept, "tests", turn)
    assert replay_report.replay_run(kept / RUN, []).problem.startswith("iteration 0, slot")


@pytest.fixture
def examined(kept) -> tuple[UnitTestRecord, Attempts]:
    """Stored tests of a task, and as many answers to it as its tests ran on."""
    task = Task("coding", "Print the sum.", {})
    stored = UnitTestRecord.from_json({**records(kept / RUN / "tests")[0], "task_id": task.task_id})
    programs = len(stored.examined.tables.dataset)
    return stored, Attempts(task, "Write a program.", ("print(1)",) * programs)


def test_slots_with_the_same_task_have_tests_of_their_own(examined):
    stored, work = examined
    source = StoredTests([stored, replace(stored, slot=99)])
    one, other = source.examine([work, work], 0, 0, write=True)
    assert one == other
    with pytest.raises(NotStored, match="no more tests of task"):
        source.examine([work], 0, 0, write=True)


def test_stored_tests_that_ran_on_another_number_of_programs_are_refused(examined):
    stored, work = examined
    more = replace(work, answers=(*work.answers, "print(2)"))
    with pytest.raises(NotStored, match=rf"ran on {len(work.answers)} programs, not {len(more.answers)}"):
        StoredTests([stored]).examine([more], 0, 0, write=True)


def test_missing_tests_are_named(kept):
    (kept / RUN / "tests" / "iter_0002.jsonl.gz").unlink()
    with pytest.raises(ConfigError, match=r"iter_0002.*tests of every iteration"):
        replay_report.replay_run(kept / RUN, [])


def test_the_first_difference_is_named_down_to_the_test(kept, coding_project, capsys):
    def turn(record: dict[str, Any]) -> bool:
        record["examined"]["tables"]["generated"][1][2] ^= True
        return True

    edit(kept, "tests", turn)
    assert main(["first-difference", str(coding_project / "runs"), str(kept / "runs")]) == 1
    assert "tests, written tests of program 1, number 2" in capsys.readouterr().out


def test_tests_are_refused_of_a_family_that_runs_no_programs():
    data = compose.compose(["judge.writes=tests"], ROOT)
    with pytest.raises(ConfigError, match=r"judge\.writes = 'tests': AlfworldFamily runs no programs"):
        check(parse(data), ROOT, engine=False)


def test_an_arm_without_outcomes_is_refused_with_tests():
    data = compose.compose(["env=coding", "+arm@arms.step_only=step_only"], ROOT)
    with pytest.raises(ConfigError, match=r"arms\.step_only\.outcome"):
        parse(data)
