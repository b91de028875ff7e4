"""The calibration: trains a little of the real thing, somewhere else, and scales the time up."""

import time
from pathlib import Path

import pytest

from rlanything.config import Config, parse
from rlanything.stages import calibrate, compose, seedrun
from rlanything.stages.layout import Layout, write_json

ROOT = Path(__file__).parents[2]
CONFIG = parse(compose.compose(["scale=smoke", "rollout.tasks=8"], ROOT))


@pytest.fixture
def made(tmp_path) -> Path:
    """A root whose tasks and base models are there, as far as the calibration looks."""
    layout = Layout(tmp_path)
    write_json(layout.manifest, {})
    write_json(layout.bootstrap, {})
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    return tmp_path


class TenSeconds:
    """Stands in for a training run: checks what it is given and lets ten seconds pass."""

    clock = 0.0
    seen: list[tuple[Config, seedrun.Where]] = []  # noqa: RUF012 - the test reads it from the class

    def __init__(self, config: Config, where: seedrun.Where, say: object) -> None:
        TenSeconds.seen.append((config, where))

    def run(self) -> None:
        where = TenSeconds.seen[-1][1]
        assert Layout(where.root).bootstrap.is_file()
        (where.root / "runs").mkdir()
        TenSeconds.clock += 10.0


def test_seconds_of_an_iteration_are_scaled_from_a_small_run(made, monkeypatch):
    monkeypatch.setattr(seedrun, "SeedRun", TenSeconds)
    monkeypatch.setattr(time, "monotonic", lambda: TenSeconds.clock)
    seconds = calibrate.seconds_per_iteration(CONFIG, made, "full")
    assert seconds == 10.0 / calibrate.ITERATIONS * 8 / calibrate.TASKS
    config, where = TenSeconds.seen[-1]
    assert (config.train.iterations, config.rollout.tasks) == (calibrate.ITERATIONS, calibrate.TASKS)
    assert config.rollout.max_steps == CONFIG.rollout.max_steps
    assert where.arm == "full"
    assert sorted(path.name for path in made.iterdir()) == ["data", "experiments", "models"]


def test_nothing_is_measured_before_there_are_models(tmp_path):
    assert calibrate.seconds_per_iteration(CONFIG, tmp_path, "full") is None
