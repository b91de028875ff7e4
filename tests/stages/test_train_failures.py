"""A seed that fails fails the stage, and what cannot be measured is written as JSON that anybody can read."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from math import inf, nan

import pytest
from stage_cases import buffer, small

from rlanything.core.errors import ConfigError
from rlanything.files.records import write_json
from rlanything.loop.iteration import IterationResult, LoopState
from rlanything.runs.folder import write_iteration_files
from rlanything.runs.layout import Layout
from rlanything.stages import train


def test_a_process_that_fails_fails_the_stage_and_leaves_no_finished_run(tmp_path, monkeypatch):
    """The reference goes on after a stage that failed. Threads stand in for the processes here."""

    def fails_in_the_second(data, root, key, arm, seed):
        if seed == 1:
            raise ConfigError("the votes hold no verdict")

    write_json(Layout(tmp_path).bootstrap, {})
    monkeypatch.setattr(train, "train_seed", fails_in_the_second)
    monkeypatch.setattr(train, "pool", ThreadPoolExecutor)
    with pytest.raises(ConfigError, match="the votes hold no verdict"):
        train.train_arm(small("train.seeds=2", "train.workers=2"), tmp_path, "full")
    assert not Layout(tmp_path).run("full", 0).parent.exists()


def measured(folder, **metrics: float) -> str:
    result = IterationResult((), (), (), (), LoopState(1, buffer()))
    write_iteration_files(folder, result, metrics, buffer(), {})
    return (folder / "metrics.json").read_text()


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


@pytest.mark.parametrize(
    "value",
    [nan, inf],
)
def test_a_metric_that_is_no_finite_number_is_null(tmp_path, value):
    text = measured(tmp_path, mu=value, accuracy=0.5)
    assert json.loads(text, parse_constant=refuse) == {"accuracy": 0.5, "mu": None}
