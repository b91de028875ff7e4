"""The benchmark of asynchrony trains in all its forms and compares them with workers alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.staleness import measuring
from rlanything import targets
from rlanything.config import load
from rlanything.core.errors import ConfigError

START = Path(__file__).parents[1] / "golden" / "start"


@pytest.mark.slow
@pytest.mark.integration
def test_the_same_training_is_timed_without_workers_with_them_and_one_step_off(monkeypatch):
    monkeypatch.setenv(targets.ALLOW, "")
    found = measuring.measure(load(START / "params.yaml"), START, iterations=2, rounds=1, wait_s=0.001)
    assert set(found) == set(measuring.FORMS)
    assert found[measuring.BASE]["times"] == 1.0
    assert [name for name, row in found.items() if row["beside"] > 0] == ["one step off"]
    assert all(row["seconds"] > row["rollout"] > 0 for row in found.values())


def test_a_project_without_models_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="data/ or models/ are missing"):
        measuring.measure(load(START / "params.yaml"), tmp_path, iterations=1, rounds=1, wait_s=0.0)
