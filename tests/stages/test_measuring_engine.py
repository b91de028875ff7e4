"""Which engines several processes of torchrun may measure with: `runs.launch`, and the stages that ask it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlanything.config import Config, parse
from rlanything.core.errors import ConfigError
from rlanything.planning import compose
from rlanything.runs import launch
from rlanything.stages.bootstrap.stage import make_models
from rlanything.stages.evaluate import evaluate_arm
from rlanything.stages.label import make_labels

REFUSED = (
    r"torchrun started 2 processes: engine=vllm runs .*; allowed: engine=vllm_servers, engine=transformers"
)
SINGLE = ("scale=single-gpu", "evaluate.labels=judge", "+evaluate.judges.strong.path=Qwen/Qwen3-32B")
ROOT = Path(__file__).parents[2]


def configuration(engine: str) -> Config:
    return parse(compose.compose([*SINGLE, f"engine={engine}"], ROOT))


@pytest.fixture(autouse=True)
def two_processes(monkeypatch):
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)


@pytest.fixture
def connecting(monkeypatch) -> list[float]:
    """The times for which processes were to be connected. None is."""
    asked: list[float] = []

    def connected(timeout_s: float):
        asked.append(timeout_s)
        return launch.nullcontext()

    monkeypatch.setattr(launch, "connected", connected)
    return asked


def test_vllm_in_the_process_is_refused_before_processes_are_connected(connecting):
    with pytest.raises(ConfigError, match=REFUSED), launch.measuring(configuration("vllm")):
        pass
    assert not connecting


@pytest.mark.parametrize("engine", ["vllm_servers", "transformers"])
def test_other_engines_are_not(connecting, engine):
    with launch.measuring(configuration(engine)):
        pass
    assert len(connecting) == 1


def test_one_process_may_have_vllm(connecting, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "1")
    with launch.measuring(configuration("vllm")):
        pass
    assert len(connecting) == 1


@pytest.mark.parametrize(
    "measure",
    [make_models, make_labels, lambda config, root: evaluate_arm(config, root, "base")],
    ids=["bootstrap", "label", "evaluate"],
)
def test_no_measurement_begins(connecting, tmp_path, measure):
    with pytest.raises(ConfigError, match=REFUSED):
        measure(configuration("vllm"), tmp_path)
    assert not list(tmp_path.iterdir())
