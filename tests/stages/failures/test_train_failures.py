"""A seed that fails fails the stage, and what cannot be measured is written as JSON that anybody can read."""

from __future__ import annotations

import json
from math import inf, nan

import pytest
from stage_cases import ROOT, buffer, small

from rlanything.core.errors import ConfigError
from rlanything.files.records import write_json
from rlanything.loop.batch import LoopState
from rlanything.loop.iteration import IterationResult
from rlanything.runs.folder import write_iteration_files
from rlanything.runs.layout import Layout
from rlanything.stages import train


@pytest.mark.long
def test_a_process_that_fails_fails_the_stage_and_leaves_no_finished_run(tmp_path):
    """The reference goes on after a stage that failed. Here the processes of both seeds find no models."""
    write_json(Layout(tmp_path).bootstrap, {})
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    config = small("train.seeds=2", "train.workers=2")
    with pytest.raises(ConfigError, match=r"models/policy.*no such folder"):
        train.train_arm(config, tmp_path, "full")
    assert not Layout(tmp_path).run("full", 0).parent.exists()


def measured(folder, **metrics: float) -> str:
    result = IterationResult((), (), (), (), LoopState(1, buffer()))
    write_iteration_files(folder, result, metrics, buffer(), buffer().digest, {})
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
