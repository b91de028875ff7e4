"""Loggers and callbacks are named by the configuration, checked before they are made, and change no result."""

from __future__ import annotations

import csv
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from stage_cases import ROOT, SMALL, contents, lines, small

from rlanything import cli
from rlanything.config import Config, parse
from rlanything.core.errors import ConfigError
from rlanything.planning import check, compose
from rlanything.runs import timings, trackers
from rlanything.runs.fingerprint import run_config
from rlanything.runs.layout import Layout
from rlanything.stages import train

ARM = "full"


@pytest.fixture(autouse=True)
def _the_cases_are_allowed(monkeypatch):
    monkeypatch.setenv("RLANYTHING_ALLOW", "tracker_cases")


PAGE = (ROOT / "docs" / "tracking.md").read_text()
CSV = "lightning.pytorch.loggers.CSVLogger"


def with_(kind: str, **section: object) -> Config:
    """The smallest configuration with one logger or callback `x`."""
    data = small().model_dump(by_alias=True)
    data["train"][kind] = {"x": section}
    return parse(data)


def project(source: Path, to: Path) -> Path:
    """A project of one's own with the same inputs."""
    shutil.copytree(source, to, symlinks=True, ignore=shutil.ignore_patterns("runs", ".rla"))
    return to


def test_without_an_entry_there_are_no_loggers_and_no_callbacks():
    assert trackers.make_loggers(small(), Path(), ARM, 0) == []
    assert trackers.make_callbacks(small()) == []


def test_every_seed_has_a_logger_with_a_folder_and_a_name_of_its_own(tmp_path):
    config = with_("loggers", _target_=CSV, save_dir="logs", name="{arm}-{seed}")
    first, second = (trackers.make_loggers(config, tmp_path, ARM, seed)[0] for seed in (0, 1))
    assert first.log_dir == str(tmp_path / "logs" / "full" / "seed-0" / "full-0" / "version_0")
    assert second.log_dir == str(tmp_path / "logs" / "full" / "seed-1" / "full-1" / "version_0")


def test_the_projects_folder_is_filled_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = with_("loggers", _target_=CSV, save_dir="logs", name="{root}")
    (logger,) = trackers.make_loggers(config, Path(), ARM, 0)
    assert logger.name == str(tmp_path)


def test_a_logger_that_is_given_no_folder_writes_beside_the_runs(tmp_path):
    (logger,) = trackers.make_loggers(with_("loggers", _target_=CSV, name=""), tmp_path, ARM, 2)
    assert logger.log_dir == str(tmp_path / ".rla" / "logs" / "full" / "seed-2" / "version_0")


@pytest.mark.parametrize(
    ("kind", "section", "message"),
    [
        ("loggers", {"_target_": "tracker_cases.Neither"}, "must be a subclass of lightning.pytorch.loggers"),
        ("callbacks", {"_target_": CSV}, "train.callbacks.x._target_ = .*must be a subclass of lightning"),
        ("loggers", {"_target_": "tracker_cases.StopAt"}, "must be a subclass of"),
        ("loggers", {"_target_": "builtins.eval"}, "train.loggers.x._target_ = 'builtins.eval'"),
        (
            "loggers",
            {"_target_": CSV, "save_dri": "x"},
            "train.loggers.x.save_dri: .*did you mean 'save_dir'",
        ),
        ("callbacks", {"_target_": "tracker_cases.StopAt", "iterations": 1}, "did you mean 'iteration'"),
        (
            "callbacks",
            {"_target_": "no.such.Class"},
            "train.callbacks.x._target_ = 'no.such.Class': not imported",
        ),
    ],
)
def test_what_cannot_be_made_is_refused_before_anything_is_called(kind, section, message, tmp_path):
    config = with_(kind, **section)
    with pytest.raises(ConfigError, match=message):
        check.check(config, ROOT)
    with pytest.raises(ConfigError, match=message):
        trackers.make_loggers(config, tmp_path, ARM, 0) or trackers.make_callbacks(config)


def test_a_section_without_a_class_is_no_configuration():
    with pytest.raises(ConfigError, match=r"train\.loggers\.x: _target_ is missing"):
        with_("loggers", save_dir="logs")


def test_loggers_decide_nothing_and_callbacks_may():
    plain, logged = small(), with_("loggers", _target_=CSV)
    assert run_config(logged, ARM) == run_config(plain, ARM)
    called = with_("callbacks", _target_="tracker_cases.StopAt", iteration=1)
    assert run_config(called, ARM) != run_config(plain, ARM)


def test_a_tracker_is_told_the_settings_but_not_those_of_trackers():
    told = trackers.hyperparameters(with_("loggers", _target_=CSV, save_dir="secret"), ARM, 1)
    assert told["arm"]["name"] == ARM
    assert told["seed"] == {"all": 0, "run": 1}
    assert "secret" not in str(told)


def of_tensorboard(folder: Path, logger: Any) -> float:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(logger.log_dir)
    found.Reload()
    return found.Scalars("accuracy")[0].value


def of_wandb(folder: Path, logger: Any) -> float:
    """Its own program writes the file, also after the run was finished. In it texts and numbers are as given."""
    (kept,) = folder.rglob("offline-run-*/run-*.wandb")
    until = time.monotonic() + 120
    while not (found := re.search(rb'accuracy[^"0-9]+(\d\.\d+)', kept.read_bytes())):
        assert time.monotonic() < until, "the metrics were not written"
        time.sleep(0.1)
    return float(found[1])


def of_mlflow(folder: Path, logger: Any) -> float:
    assert (folder / "mlflow.db").is_file()
    return logger.experiment.get_metric_history(logger.run_id, "accuracy")[0].value


READ_BACK = {"tensorboard": of_tensorboard, "wandb": of_wandb, "mlflow": of_mlflow}
"""Of what a tracker wrote: the accuracy of an iteration."""


@pytest.mark.long
@pytest.mark.parametrize("name", READ_BACK)
def test_other_trackers_take_an_iteration_s_metrics_without_a_network(name, tmp_path, monkeypatch):
    pytest.importorskip(name, reason=f"{name} is not installed: make trackers; docs/tracking.md")
    for folder in (".rla", "elsewhere"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    config = parse(compose.compose([*SMALL, f"logger={name}"], ROOT))
    (logger,) = trackers.make_loggers(config, tmp_path, ARM, 0)
    logger.log_hyperparams(trackers.hyperparameters(config, ARM, 0))
    logger.log_metrics({"accuracy": 0.5, "policy/loss": 0.1}, step=0)
    logger.save()
    logger.finalize("success")
    assert READ_BACK[name](tmp_path / ".rla", logger) == pytest.approx(0.5)


@pytest.mark.long
@pytest.mark.integration
def test_the_commands_of_the_page_give_a_table_of_metrics_and_the_same_run(
    tiny_project, undisturbed, tmp_path
):
    root = project(tiny_project, tmp_path / "project")
    block, _trial = re.findall(r"```bash\n(.*?)```", PAGE, flags=re.DOTALL)
    for line in block.splitlines():
        program, *words = line.partition("#")[0].split()
        assert program == "rlanything"
        more = SMALL if words[:2] == ["config", "write"] else ()
        assert cli.main(["--root", str(root), *words, *more]) == 0
    assert contents(Layout(root).run(ARM, 0)) == contents(undisturbed)
    table = root / ".rla" / "logs" / ARM / "seed-0" / "version_0" / "metrics.csv"
    rows, truth = list(csv.DictReader(table.open())), lines(undisturbed / "metrics.jsonl")
    assert [int(row["step"]) for row in rows] == [row["iteration"] for row in truth]
    for name in ("accuracy", "mu", "policy/loss", "reward/loss", "panel/in_domain"):
        assert float(rows[0][name]) == pytest.approx(truth[0][name])


@pytest.mark.long
@pytest.mark.integration
def test_an_interrupted_run_goes_on_with_its_callbacks_and_has_a_row_of_times_for_every_iteration(
    tiny_project, undisturbed, tmp_path
):
    root = project(tiny_project, tmp_path / "project")
    marker = tmp_path / "interrupted"
    config = with_("callbacks", _target_="tracker_cases.InterruptOnce", at=1, marker=str(marker))
    with pytest.raises(KeyboardInterrupt):
        train.train_arm(config, root, ARM)
    assert marker.exists()
    train.train_arm(config, root, ARM)
    assert contents(Layout(root).run(ARM, 0)) == contents(undisturbed)
    rows = timings.read(Layout(root).timings(ARM, 0))
    assert [row["iteration"] for row in rows] == list(range(config.train.iterations + 1))
    for row in rows[:-1]:
        parts = {"rollout", "judge", "adapt", "learn", "publish", "panels", "weights"}
        assert parts <= row["phases"].keys()
        assert {"rollout/generate", "judge/generate", "publish/sync"} <= row["phases"].keys()
        assert sum(row["phases"][name]["seconds"] for name in parts) <= row["seconds"]
        assert row["tokens"] > 0


@pytest.mark.integration
def test_a_callback_that_ends_a_run_early_is_an_error(tiny_project, tmp_path):
    root = project(tiny_project, tmp_path / "project")
    config = with_("callbacks", _target_="tracker_cases.StopAt", iteration=0)
    with pytest.raises(ConfigError, match=r"stopped after iteration 0, before train\.iterations"):
        train.train_arm(config, root, ARM)
    assert not Layout(root).run(ARM, 0).exists()
