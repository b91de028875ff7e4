"""Checks of a finished run whose models see: policies play with pictures, and reward models are asked with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from check_cases import here, rewrite_tasks
from picture_run_cases import configured, patched, train_once

from rlanything.checks import finished_runs
from rlanything.checks.adaptation import command as adaptation
from rlanything.checks.corruption import command as corruption
from rlanything.core.types import Request
from rlanything.engines.transformers import TransformersEngine

pytestmark = pytest.mark.integration
CONFIG = configured("train.seeds=1")


@pytest.fixture
def asked(monkeypatch) -> list[Request]:
    """What models are asked from now on."""
    found, generate = [], TransformersEngine.generate

    def noted(self, requests):
        found.extend(requests)
        return generate(self, requests)

    monkeypatch.setattr(TransformersEngine, "generate", noted)
    monkeypatch.setattr(finished_runs, "run_all", here)
    return found


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """A project whose games show pictures, with a finished run in which tasks were rewritten."""
    with pytest.MonkeyPatch.context() as patch:
        patched(patch)
        root = tmp_path_factory.mktemp("pictures")
        train_once(root, CONFIG)
        rewrite_tasks(root / "runs" / "full" / "seed-0")
        yield root


def declared(root: Path, **keys: Any) -> Path:
    file = root / "tiny.yaml"
    file.write_text(yaml.safe_dump({"seeds": 1, **keys}))
    return file


def test_the_reward_model_is_asked_about_damaged_steps_with_their_pictures(seen, asked):
    corruption.run_corruption(declared(seen, arms=["full"]), seen, CONFIG, 1)
    assert asked
    assert all(request.images for request in asked)
    found = json.loads((seen / "checks" / "tiny" / "corruption.json").read_text())
    assert set(found["kinds"]["observation"]) == {"base", "full"}
    stored = {path.stem for path in (seen / "models" / "images").rglob("*.png")}
    assert {name for request in asked for name in request.images} <= stored


def test_policies_play_rewritten_tasks_with_pictures_and_tasks_lie_apart_by_what_is_seen(seen, asked):
    adaptation.run_adaptation(declared(seen, against=None, rollouts=2), seen, CONFIG, 1)
    assert asked
    assert all(request.images for request in asked)
    found = json.loads((seen / "checks" / "tiny" / "rollouts" / "seed-0.json").read_text())
    assert len(found["rewrites"]) == 3
    lexical, embedded = found["moved"]["apart"]
    assert 0 < lexical < 1
    assert 0 < embedded < 2
