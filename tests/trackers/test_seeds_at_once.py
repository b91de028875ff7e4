"""Trackers where several seeds of an arm write: at once in processes of their own, or one after the other in this one.

Processes of seeds are those of a training (`runs.workers`): they end without what Python does at the end of a program.
"""

from __future__ import annotations

import multiprocessing
import re
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from seeds_cases import STEPS, copy_metrics
from stage_cases import ROOT, SMALL

from rlanything.config import parse
from rlanything.core.errors import ConfigError
from rlanything.files import locks
from rlanything.planning import compose
from rlanything.runs import trackers
from rlanything.runs.workers import side_by_side
from rlanything.trackers import mlflow_database

pytestmark = pytest.mark.long
SEEDS = 2


def train(tracker: str, root: Path, workers: int) -> None:
    """Two seeds that log."""
    pytest.importorskip(tracker, reason=f"{tracker} is not installed: make trackers; docs/tracking.md")
    (root / ".rla").mkdir()
    data = compose.compose([*SMALL, f"logger={tracker}"], ROOT)
    side_by_side(copy_metrics, [(data, root, seed) for seed in range(SEEDS)], workers)


BLOCK, HEADER = 1 << 15, struct.Struct("<IHB")
"""Of LevelDB's log format: bytes of a block, and a part's checksum, length and kind (whole, first, middle, last)."""
WHOLE, FIRST, LAST = 1, 2, 4


def records(file: Path) -> Iterator[Any]:
    """What an offline run of Weights & Biases holds."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, place, text = file.read_bytes(), HEADER.size, b""
    while place + HEADER.size <= len(data):
        if (left := BLOCK - place % BLOCK) < HEADER.size:
            place += left
            continue
        _, length, kind = HEADER.unpack_from(data, place)
        place += HEADER.size
        if place + length > len(data):  # it is being written
            return
        text = (b"" if kind in (WHOLE, FIRST) else text) + data[place : place + length]
        place += length
        if kind in (WHOLE, LAST):
            record = Record()
            record.ParseFromString(text)
            yield record


def ended(file: Path) -> list[Any]:
    """The records up to the run's end: the service of wandb still writes when `finish` has returned."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        found = list(records(file))
        if any(record.WhichOneof("record_type") == "exit" for record in found):
            break
        time.sleep(0.1)
    return found


@pytest.mark.parametrize("workers", [1, 2], ids=["in one process", "at once"])
def test_every_seed_has_a_whole_run_in_weights_and_biases(tmp_path, workers):
    train("wandb", tmp_path, workers)
    for seed in range(SEEDS):
        (file,) = (tmp_path / ".rla" / "logs" / "full" / f"seed-{seed}").rglob("offline-run-*/run-*.wandb")
        found = ended(file)
        kinds = [record.WhichOneof("record_type") for record in found]
        assert (
            next(r.run.display_name for r in found if r.WhichOneof("record_type") == "run") == f"full-{seed}"
        )
        assert (kinds.count("history"), kinds.count("exit")) == (STEPS, 1)


@pytest.mark.parametrize("workers", [1, 2], ids=["in one process", "at once"])
def test_every_seed_has_a_whole_run_in_mlflow(tmp_path, workers):
    train("mlflow", tmp_path, workers)
    from mlflow.tracking import MlflowClient

    client = MlflowClient(f"sqlite:///{tmp_path}/.rla/mlflow.db")
    (experiment,) = (e for e in client.search_experiments() if e.name == "rlanything")
    found = client.search_runs([experiment.experiment_id])
    assert sorted(run.info.run_name for run in found) == [f"full-{seed}" for seed in range(SEEDS)]
    for run in found:
        assert run.info.status == "FINISHED"
        assert len(client.get_metric_history(run.info.run_id, "metric/0")) == STEPS


def hold(path: Path, held: Any, done: Any) -> None:
    with locks.held(path, "the test"):
        held.set()
        done.wait(60)


def test_a_seed_waits_until_no_other_process_opens_the_database(tmp_path, monkeypatch):
    pytest.importorskip("mlflow", reason="mlflow is not installed: make trackers; docs/tracking.md")
    (tmp_path / ".rla").mkdir()
    lock, context = tmp_path / ".rla" / "mlflow.db.lock", multiprocessing.get_context("fork")
    held, done = context.Event(), context.Event()
    other = context.Process(target=hold, args=(lock, held, done))
    other.start()
    try:
        assert held.wait(60)
        monkeypatch.setattr(mlflow_database, "PATIENCE_S", 0.0)
        config = parse(compose.compose([*SMALL, "logger=mlflow"], ROOT))
        with pytest.raises(ConfigError, match=re.escape(f"{lock}: another process opens MLflow's database")):
            trackers.make_loggers(config, tmp_path, "full", 0)
    finally:
        done.set()
        other.join()
