"""The calibration: trains a little of the real thing, somewhere else, and scales the time up."""

from pathlib import Path

import pytest

from rlanything.config import Config, parse
from rlanything.core.errors import ConfigError
from rlanything.core.timing import Lap, Spent
from rlanything.files.records import write_json
from rlanything.planning import calibrate, compose
from rlanything.runs import seedrun, timings
from rlanything.runs.layout import Layout
from rlanything.runs.parts import RunId

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
    """Stands in for a training run: checks what it is given, and says that an iteration took ten seconds."""

    seen: list[tuple[Config, RunId]] = []  # noqa: RUF012 - the test reads it from the class

    def __init__(self, config: Config, where: RunId, say: object, check: object) -> None:
        TenSeconds.seen.append((config, where))

    def run(self) -> None:
        where = TenSeconds.seen[-1][1]
        assert Layout(where.root).bootstrap.is_file()
        (where.root / "runs").mkdir()
        for iteration, panels in enumerate((2.0, 0.0, 500.0)):
            lap = Lap(Spent(10.0 + panels, 1.0), {"panels": Spent(panels, 1.0)})
            timings.record(where.live, iteration, lap)


def test_seconds_of_an_iteration_are_scaled_from_a_small_run_without_its_panels(made, monkeypatch):
    monkeypatch.setattr(seedrun, "SeedRun", TenSeconds)
    seconds = calibrate.seconds_per_iteration(CONFIG, made, "full")
    assert seconds == 10.0 * 8 / calibrate.TASKS
    config, where = TenSeconds.seen[-1]
    assert (config.train.iterations, config.rollout.tasks) == (calibrate.ITERATIONS, calibrate.TASKS)
    assert config.rollout.max_steps == CONFIG.rollout.max_steps
    assert where.arm == "full"
    assert sorted(path.name for path in made.iterdir()) == ["data", "experiments", "models"]


def test_an_arm_with_another_arms_reward_model_is_measured_with_it(made, monkeypatch):
    config = parse(compose.compose(["scale=smoke", "+arm@arms.policy_learned=policy_learned"], ROOT))
    with pytest.raises(ConfigError, match=rf"{made}/runs/policy_reward/.*train --arm policy_reward"):
        calibrate.seconds_per_iteration(config, made, "policy_learned")
    reward = Path("runs", "policy_reward", "seed-0", "checkpoints", "reward")
    (made / reward).mkdir(parents=True)
    seen = []

    class Linked(TenSeconds):
        def run(self) -> None:
            place = TenSeconds.seen[-1][1].root
            seen.append((place / reward).resolve())
            (place / "runs" / "policy_reward").unlink()
            (place / "runs").rmdir()
            super().run()

    monkeypatch.setattr(seedrun, "SeedRun", Linked)
    assert calibrate.seconds_per_iteration(config, made, "policy_learned") > 0
    assert seen == [(made / reward).resolve()]


def test_nothing_is_measured_before_there_are_models(tmp_path):
    assert "`rlanything bootstrap`" in calibrate.why_not(CONFIG, tmp_path)


@pytest.mark.parametrize("section", ["env", "engine"])
def test_nothing_is_made_of_a_class_from_elsewhere(made, section):
    assert calibrate.why_not(CONFIG, made) == ""
    config = CONFIG.model_copy(update={section: {"_target_": "elsewhere.Class"}})
    assert "the project's own" in calibrate.why_not(config, made)


def test_several_processes_are_not_measured_by_one(made):
    train = CONFIG.train.model_copy(update={"devices": 2})
    assert "train.devices" in calibrate.why_not(CONFIG.model_copy(update={"train": train}), made)
