"""The benchmarks measure what they say, leave out what is not there and say so, and change nothing they measure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from stage_cases import small

from benchmarks import __main__ as bench
from benchmarks import environments, iteration, table, training
from benchmarks.sampling import Workload
from rlanything.config import Config
from rlanything.core.types import Observation, StepResult, Task
from rlanything.planning import compose
from rlanything.runs.layout import Layout

ROOT = Path(__file__).parents[2]
TINY = Workload(
    tasks=1, rollouts=2, turns=2, prompt=20, observation=6, response=4, trajectories=1, steps=2, reasoning=4
)


class Counting:
    """An environment whose episodes end after three steps."""

    def __init__(self) -> None:
        self.steps = 0
        self.closed = False

    def reset(self, task: Task, seed: int) -> Observation:
        self.steps = 0
        return Observation("", ("a", "b"))

    def step(self, action: str) -> StepResult:
        assert action in ("a", "b")
        self.steps += 1
        return StepResult(Observation("", ("a", "b")), self.steps == 3, False)

    def close(self) -> None:
        self.closed = True


@pytest.fixture(scope="module")
def config() -> Config:
    return small()


def test_an_episode_counts_its_steps_and_ends_when_it_is_over():
    task = Task("x", "", {})
    assert environments.play(Counting(), task, 10) == 3
    assert environments.play(Counting(), task, 2) == 2


def test_an_environment_is_closed_whatever_happens():
    environment = Counting()
    tasks = [Task("x", "", {"n": n}) for n in range(20_000)]
    assert environments.steps_per_second(environment, tasks, 10) > 0
    assert environment.closed


def test_without_the_real_engine_the_note_says_how_to_install_it(config, monkeypatch):
    def missing() -> None:
        raise ValueError("needs textworld")

    monkeypatch.setattr(environments, "require_textworld", missing)
    notes: list[str] = []
    found = environments.measure_environments(config, notes)
    assert found["ours_steps_per_s"] > 1000
    assert found.keys() == set(environments.KEYS)
    assert found["textworld_steps_per_s"] is None
    assert found["textworld_cached_steps_per_s"] is None
    assert "make alfworld" in notes[0]


def test_programs_are_not_played_at_random_and_the_note_says_so():
    notes: list[str] = []
    found = environments.measure_environments(small("env=coding"), notes)
    assert set(found.values()) == {None}
    assert "ALFWorld" in notes[0]


def test_random_rows_are_what_learning_expects():
    policy, reward = training.random_rows(4)
    assert not any(row.branched for row in policy)
    assert all(row.branched for row in reward)
    for rows in (policy, reward):
        assert sum(sum(row.weight) for row in rows) == pytest.approx(1.0)


def test_training_counts_the_tokens_of_its_rows(config):
    measured = training.measure_training(config, 2)
    assert measured["tokens"] == sum(len(row.ids) for rows in training.random_rows(2) for row in rows)
    assert measured["tokens_per_s"] > 0


@pytest.mark.long
@pytest.mark.integration
def test_an_iteration_is_measured_on_the_real_loop(config, tiny_project):
    before = sorted(p for p in tiny_project.rglob("*") if p.is_file())
    measured, found = iteration.measure_iteration(config, tiny_project)
    assert measured["rows"] == "rollouts"
    assert measured["tokens"] > 0
    assert sum(found["shares"].values()) == pytest.approx(1.0)
    assert all(0 <= share <= 1 for share in found["shares"].values())
    assert 0 < found["generate"]["rollout"] < 1
    assert 0 < found["publish"]["sync_seconds"] < found["publish"]["seconds"] < found["seconds"]
    assert sorted(p for p in tiny_project.rglob("*") if p.is_file()) == before
    assert not Layout(tiny_project).run("full", 0).exists()


@pytest.mark.long
def test_everything_lands_in_one_file_and_one_table(tmp_path, monkeypatch, capsys):
    measure_all = bench.measure_all
    monkeypatch.setattr(bench, "measure_all", lambda config, root: measure_all(config, root, TINY, 2))
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    compose.write(tmp_path / "params.yaml", ["scale=smoke"], tmp_path)
    assert bench.main(["--root", str(tmp_path)]) == 0
    written = json.loads((tmp_path / bench.FILE).read_text())
    assert written.keys() == {"machine", "notes", "env", "sampling", "votes", "training", "iteration"}
    assert written["machine"]["threads"] == 1
    assert written["training"]["rows"] == "random"
    assert any("dvc repro bootstrap" in note for note in written["notes"])
    printed = capsys.readouterr()
    assert "environment steps/s" in printed.out
    assert "No iteration was measured" in printed.out
    assert "bench: " in printed.err


def test_an_unreadable_project_is_one_message(tmp_path, capsys):
    assert bench.main(["--root", str(tmp_path)]) == 2
    assert "params.yaml: no such file" in capsys.readouterr().err


def test_numbers_have_three_figures():
    assert [table.number(x) for x in (None, 41_659.36, 28.04, 6.004)] == ["-", "41,659", "28.0", "6.00"]
