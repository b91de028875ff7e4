"""The benchmark measures what it says, leaves out what is not there and says so, and changes nothing it measures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlanything.config import Config, ConfigError, parse
from rlanything.core.types import Observation, StepResult, Task
from rlanything.stages import bench, benchlearn, benchtable, bootstrap, compose, tasks
from rlanything.stages.layout import Layout

ROOT = Path(__file__).parents[2]
SMALL = [
    "scale=smoke",
    "bootstrap.min_mu=0",
    *(f"bootstrap.{name}.{key}={value}" for name in ("policy", "reward", "adapter")
      for key, value in (("episodes", 12), ("steps", 2))),
]  # fmt: skip
RATES = {"ours_steps_per_s": 40_000.0, "textworld_steps_per_s": None, "textworld_cached_steps_per_s": None}


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
    return parse(compose.compose(SMALL, ROOT))


@pytest.fixture(scope="module")
def project(config, tmp_path_factory) -> Path:
    """A folder with tasks and barely trained models."""
    root = tmp_path_factory.mktemp("bench")
    (root / "experiments").symlink_to(ROOT / "experiments")
    tasks.run(config, root)
    bootstrap.run(config, root)
    return root


def generation() -> dict[str, object]:
    rates = {"ours_tokens_per_s": 100.0, "generate_tokens_per_s": 10.0}
    return {"sampling": rates, "votes": {"ours_per_s": 60.0, "separate_per_s": 10.0, "generate_per_s": 3.0}}


def test_an_episode_counts_its_steps_and_ends_when_it_is_over():
    task = Task("x", "", {})
    assert bench.play(Counting(), task, 10) == 3
    assert bench.play(Counting(), task, 2) == 2


def test_an_environment_is_closed_whatever_happens():
    environment = Counting()
    assert bench.steps_per_second(environment, [Task("x", "", {"n": n}) for n in range(20_000)], 10) > 0
    assert environment.closed


def test_without_the_real_engine_the_note_says_how_to_install_it(config, monkeypatch):
    real = bench.build.instantiate

    def without(section, name, **given):
        if section.get("engine") == "textworld":
            raise ConfigError("env: needs textworld")
        return real(section, name, **given)

    monkeypatch.setattr(bench.build, "instantiate", without)
    notes: list[str] = []
    found = bench.environments(config, notes)
    assert found["ours_steps_per_s"] > 1000
    assert found["textworld_steps_per_s"] is None
    assert found["textworld_cached_steps_per_s"] is None
    assert "make alfworld" in notes[0]


def test_random_rows_are_what_learning_expects():
    policy, reward = benchlearn.random_rows()
    assert not any(row.branched for row in policy)
    assert all(row.branched for row in reward)
    for rows in (policy, reward):
        assert sum(sum(row.weight) for row in rows) == pytest.approx(1.0)


def test_without_models_random_rows_are_learned_and_the_note_says_what_is_missing(
    config, tmp_path, monkeypatch
):
    monkeypatch.setattr(benchlearn, "UNITS", 2)
    notes: list[str] = []
    training, iteration = bench.learning(config, tmp_path, notes)
    assert iteration is None
    assert training["rows"] == "random"
    assert training["tokens_per_s"] > 0
    assert "dvc repro bootstrap" in notes[0]


@pytest.mark.integration
def test_an_iteration_is_measured_on_the_real_loop(config, project):
    before = sorted(p for p in project.rglob("*") if p.is_file())
    notes: list[str] = []
    training, iteration = bench.learning(config, project, notes)
    assert notes == []
    assert iteration is not None
    assert training["tokens"] >= 0
    assert sum(iteration["shares"].values()) == pytest.approx(1.0)
    assert all(0 <= share <= 1 for share in iteration["shares"].values())
    assert 0 < iteration["generate"]["rollout"] < 1
    assert 0 < iteration["publish"]["sync_seconds"] < iteration["publish"]["seconds"] < iteration["seconds"]
    assert sorted(p for p in project.rglob("*") if p.is_file()) == before
    assert not Layout(project).run("full", 0).exists()


def test_everything_lands_in_one_file_and_one_table(config, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bench, "environments", lambda config, notes: RATES)
    monkeypatch.setattr(bench, "generation", generation)
    monkeypatch.setattr(benchlearn, "UNITS", 2)
    bench.run(config, tmp_path)
    written = json.loads((tmp_path / bench.FILE).read_text())
    assert written.keys() == {"machine", "notes", "env", "sampling", "votes", "training", "iteration"}
    assert written["machine"]["threads"] == 1
    printed = capsys.readouterr()
    assert "environment steps/s" in printed.out
    assert "No iteration was measured" in printed.out
    assert "bench: " in printed.err


def test_numbers_have_three_figures():
    assert [benchtable.number(x) for x in (None, 41_659.36, 28.04, 6.004)] == ["-", "41,659", "28.0", "6.00"]
