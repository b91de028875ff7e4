"""What the stage `bootstrap` writes of checkpoints that it does not make."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
from stage_cases import small

from rlanything.config import Checkpoint, Config, Endpoint, Endpoints
from rlanything.core.errors import ConfigError
from rlanything.runs import build
from rlanything.stages.bootstrap.stage import _install, _trained, make_models
from rlanything.stages.dependencies import loaded


@pytest.fixture
def config(tmp_path, monkeypatch) -> Config:
    """A folder, and two names in the hub's cache."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    place = tmp_path / "hub" / "models--someone--tiny"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("0" * 40)
    (place / "snapshots" / ("0" * 40)).mkdir(parents=True)
    (place / "snapshots" / ("0" * 40) / "config.json").write_text("{}")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model.safetensors").write_text("first")
    config = small()
    hub, mine = Checkpoint(path="someone/tiny"), Checkpoint(path=str(tmp_path / "mine"))
    model = config.model.model_copy(update={"embedded": None, "policy": mine, "reward": hub, "adapter": hub})
    return config.model_copy(update={"model": model})


def recorded(root: Path, name: str) -> dict[str, object]:
    return json.loads((root / "models" / name / "source.json").read_text())


def test_real_checkpoints_are_recorded_with_what_they_are_made_of(tmp_path, config):
    root = tmp_path / "project"
    _install(config, root, None)
    given = {"revision": None, "allow_pickle": False}
    files = {"model.safetensors": sha256(b"first").hexdigest()}
    assert recorded(root, "policy") == {"path": str(tmp_path / "mine"), **given, "files": files}
    assert recorded(root, "reward") == {"path": "someone/tiny", **given, "commit": "0" * 40}
    (tmp_path / "mine" / "model.safetensors").write_text("other")
    _install(config, root, None)
    assert recorded(root, "policy")["files"] != files


@pytest.mark.parametrize("path", ["models/policy", "models/mine", "elsewhere/reward"])
def test_an_embedded_model_has_the_folder_of_its_role(tmp_path, path):
    """In the policy's folder the reward model would replace the policy, which was written before."""
    with pytest.raises(ConfigError, match=rf"model\.reward\.path = {path}: .* is written to models/reward"):
        _trained(small(f"model.reward.path={path}"), tmp_path)


def test_a_model_behind_an_endpoint_is_recorded_by_its_name_there(tmp_path, config):
    adapter = Endpoint(base_url="https://models.example/v1/", model="large")
    served = config.model_copy(update={"endpoints": Endpoints(adapter=adapter)})
    _install(served, tmp_path / "project", None)
    assert recorded(tmp_path / "project", "adapter") == {
        "endpoint": "https://models.example/v1",
        "model": "large",
    }
    assert "endpoint" not in recorded(tmp_path / "project", "reward")
    assert [source.path for source in loaded(served)] == [config.model.policy.path, "someone/tiny"]


def test_an_adapter_that_no_training_could_load_is_refused_before_any_model_is_loaded(
    tmp_path, config, monkeypatch
):
    """This stage asks it nothing, and hours of training may come before the first arm that does."""

    def load(*_: object) -> None:
        raise RuntimeError("the policy is loaded")

    monkeypatch.setattr(build, "load", load)
    mine = config.model.policy
    model = config.model.model_copy(update={"reward": mine, "adapter": mine})
    own = config.model_copy(update={"model": model})
    with pytest.raises(ConfigError, match=rf"{mine.path}: no configuration \(config\.json\)"):
        make_models(own, tmp_path / "project")
    still = {name: arm.model_copy(update={"adapt": False}) for name, arm in own.arms.items()}
    adapter = Endpoint(base_url="https://models.example/v1/", model="large")
    for unasked in ({"arms": still}, {"endpoints": Endpoints(adapter=adapter)}):
        with pytest.raises(RuntimeError, match="the policy is loaded"):
            make_models(own.model_copy(update=unasked), tmp_path / "project")
