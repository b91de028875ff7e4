"""Real checkpoints before they are loaded: what is refused, what is warned about, and that the presets are silent."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

from rlanything.cli import main
from rlanything.config import Config, parse
from rlanything.core.errors import ConfigError
from rlanything.planning import checkpoints, compose

ROOT = Path(__file__).parents[2]


def configuration(*overrides: str) -> Config:
    return parse(compose.compose(overrides, ROOT))


@pytest.fixture
def folder(tmp_path) -> Path:
    """What looks like a checkpoint of an architecture that engine=native cannot run."""
    path = tmp_path / "checkpoint"
    path.mkdir()
    (path / "config.json").write_text(json.dumps({"model_type": "qwen3"}))
    for name in ("model.safetensors", "tokenizer.json", "chat_template.jinja"):
        (path / name).touch()
    return path


def refusal(*overrides: str) -> str:
    with pytest.raises(ConfigError) as raised:
        checkpoints.check(configuration(*overrides), ROOT)
    return str(raised.value)


def test_one_path_is_all_three_models_and_each_can_have_its_own(folder):
    for words in (["model=local"], ["scale=local"], ["scale=local", "env=coding_data"]):
        model = configuration(*words, f"path={folder}", "model.reward.path=a/b").model
        assert (model.policy.path, model.reward.path, model.adapter.path) == (str(folder), "a/b", str(folder))
        assert model.embedded is None


def test_the_key_is_there_only_where_a_file_uses_it():
    assert "path" not in compose.compose(["scale=local"], ROOT)
    with pytest.raises(ConfigError, match=r"override 'path=x': unknown; did you mean 'model.policy.path'"):
        compose.compose(["path=x"], ROOT)


def test_a_missing_folder_is_refused_with_the_nearest_one(folder):
    near = folder.with_name("chekpoint")
    assert refusal("scale=local", f"path={near}") == (
        f"model.policy.path = {near}: no such folder; did you mean {folder}?"
    )
    assert "give a folder or a name on the hub" in refusal("scale=local", "path=/nowhere/at/all")
    assert "no config.json there" in refusal("scale=local", f"path={folder.parent}")


def test_an_engine_that_cannot_run_the_architecture_is_refused(folder):
    checkpoints.check(configuration("scale=local", f"path={folder}"), ROOT)
    assert "engine=native cannot run model_type 'qwen3'" in refusal("model=local", f"path={folder}")
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen2"}))
    checkpoints.check(configuration("model=local", f"path={folder}"), ROOT)


def test_the_command_refuses_and_writing_warns(folder, tmp_path, capsys):
    params = str(tmp_path / "params.yaml")
    words = ["config", "write", "--output", params, "scale=local", "path=/nowhere"]
    assert main(["--root", str(ROOT), *words]) == 0
    assert "warning: model.policy.path = /nowhere: no such folder" in capsys.readouterr().err
    check = ["--root", str(ROOT), "--params", params, "config", "check"]
    assert main(check) == 2
    assert "model.policy.path = /nowhere: no such folder" in capsys.readouterr().err


def test_a_device_that_is_not_there_is_refused_by_the_check(folder, tmp_path, capsys, monkeypatch):
    from rlanything.engines import placement

    monkeypatch.setattr(placement, "_count", lambda kind: int(kind == "cpu"))
    params = str(tmp_path / "params.yaml")
    compose.write(Path(params), ["scale=local", f"path={folder}", "train.accelerator=cuda"], ROOT)
    assert main(["--root", str(ROOT), "--params", params, "config", "check"]) == 2
    assert "train.accelerator = 'cuda': PyTorch" in capsys.readouterr().err


def test_values_of_the_embedded_models_are_warned_about(folder):
    found = checkpoints.warnings(
        configuration("model=qwen2.5", f"model.policy.path={folder}", "engine=transformers"), ROOT
    )
    keys = [text.partition(" = ")[0] for text in found]
    assert keys[:-1] == [
        "learn.policy.lr",
        "rollout.max_tokens",
        "judge.max_tokens",
        "adaptation.max_tokens",
        "rollout.decoding",
        "model.reward.path",
        "model.adapter.path",
    ]
    assert found[-1] == checkpoints.ADVICE


@pytest.mark.parametrize(
    "overrides",
    [
        ("scale=local",),
        ("scale=local", "env=alfworld_data", "env.engine=fast"),
        ("scale=local", "env=coding_data"),
        ("scale=single-gpu",),
        ("scale=paper", "env.engine=fast"),
        (),
    ],
    ids=" ".join,
)
def test_the_presets_give_no_warning(overrides):
    assert checkpoints.warnings(configuration(*overrides), ROOT) == []


def test_the_local_scale_fits_the_card_that_its_page_names(capsys):
    words = ["plan", "scale=local", "--arm", "full", "--device", "RTX4090", "--details"]
    assert main(["--root", str(ROOT), *words]) == 0
    out = capsys.readouterr().out
    assert "\n  fits: " in out
    (most,) = re.findall(r"\n  at most +([\d.]+ GB) ", out)
    assert f"at most {most} by `rlanything plan" in (ROOT / "docs" / "checkpoints.md").read_text()


WINDOW = {"model_type": "mistral", "sliding_window": 4096, "max_position_embeddings": 32768}


def test_an_architecture_that_cannot_be_trained_is_refused_where_it_is_to_learn(folder):
    (folder / "config.json").write_text(json.dumps(WINDOW))
    said = (
        "its config.json has sliding_window = 4096, and no such model can be trained here, only sampled; "
        "allowed: null, or at least max_position_embeddings, 32768"
    )
    assert refusal("scale=local", f"path={folder}") == f"model.policy.path = {folder}: {said}"
    assert refusal("scale=local", "path=a/b", f"model.reward.path={folder}") == (
        f"model.reward.path = {folder}: {said}"
    )
    found = checkpoints.warnings(configuration("scale=local", f"path={folder}"), ROOT)
    assert found == [f"model.policy.path = {folder}: {said}"]  # as `config write` and `plan` say it


def test_one_that_is_only_sampled_may_have_any_architecture(folder):
    (folder / "config.json").write_text(json.dumps(WINDOW))
    checkpoints.check(configuration("scale=local", "path=a/b", f"model.adapter.path={folder}"), ROOT)
    config = configuration("scale=local", "path=a/b", f"model.reward.path={folder}")
    still = {name: arm.model_copy(update={"train_reward": False}) for name, arm in config.arms.items()}
    checkpoints.check(config.model_copy(update={"arms": still}), ROOT)


def test_of_a_name_on_the_hub_the_cache_is_asked(folder, monkeypatch):
    (folder / "config.json").write_text(json.dumps(WINDOW))
    asked = []

    def cached(*words):
        asked.append(words)
        return folder / "config.json"

    monkeypatch.setattr(checkpoints, "cached", cached)
    said = refusal("scale=local", "path=a/b", "model.policy.revision=c0ffee")
    assert said.startswith("model.policy.path = a/b: its config.json has sliding_window = 4096")
    assert asked == [("a/b", "config.json", "c0ffee")]


@pytest.mark.parametrize("role", ["policy", "reward", "adapter"])
def test_a_checkpoint_that_embedded_models_would_stand_for_is_refused(role, capsys):
    words = f"model.{role}.path=Qwen/Qwen2.5-7B-Instruct"
    said = refusal(words)
    assert said.startswith(
        f"model.{role}.path = Qwen/Qwen2.5-7B-Instruct: with model.embedded the models are made"
    )
    assert "`model=local path=Qwen/Qwen2.5-7B-Instruct`" in said
    assert main(["--root", str(ROOT), "config", "check", words]) == 2
    capsys.readouterr()
    assert main(["--root", str(ROOT), "plan", "--arm", "full", words]) == 0
    assert f"warning: {said}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("role", "name"),
    [("policy", "rollout.max_tokens"), ("reward", "judge.max_tokens"), ("adapter", "adaptation.max_tokens")],
)
def test_a_reply_longer_than_the_checkpoint_reads_is_refused(folder, role, name):
    """Its prompts would leave no room, so no vote would be cast and every episode would be cut off."""
    words = "scale=local", "path=a/b", f"model.{role}.path={folder}"
    for positions in ({"max_position_embeddings": 2048}, {"text_config": {"max_position_embeddings": 2048}}):
        (folder / "config.json").write_text(json.dumps({"model_type": "qwen3", **positions}))
        said = refusal(*words, f"{name}=2048")
        assert said.startswith(f"{name} = 2048: must be below max_position_embeddings = 2048, ")
        assert f"model.{role}.path = {folder}" in said
        checkpoints.check(configuration(*words, f"{name}=2047"), ROOT)


def test_of_a_name_in_the_cache_and_of_a_model_that_measures_the_positions_are_asked_too(folder, monkeypatch):
    short = {"model_type": "qwen3", "max_position_embeddings": 300}
    (folder / "config.json").write_text(json.dumps(short))
    words = "scale=local", "path=a/b", "rollout.max_tokens=128", "judge.max_tokens=299"
    solver = f"+evaluate.solver.path={folder}"
    checkpoints.check(configuration(*words, solver), ROOT)
    assert refusal(*words, solver, "rollout.max_tokens=300").startswith(
        "rollout.max_tokens = 300: must be below"
    )
    assert refusal(*words, solver, "+evaluate.solver.max_tokens=301").startswith(
        "evaluate.solver.max_tokens = 301:"
    )
    judge = "evaluate.labels=judge", f"+evaluate.judges.one.path={folder}"
    assert refusal(*words, *judge, "judge.max_tokens=300").startswith("judge.max_tokens = 300: must be below")
    monkeypatch.setattr(checkpoints, "cached", lambda *_: folder / "config.json")
    assert refusal(*words, "adaptation.max_tokens=300").startswith(
        "adaptation.max_tokens = 300: must be below"
    )


@pytest.mark.parametrize("role", ["policy", "reward", "adapter"])
@pytest.mark.parametrize(
    ("lost", "words"),
    [
        ("model.safetensors", r"no weights \(model\*\.safetensors"),
        ("tokenizer.json", r"no tokenizer \(tokenizer\.json"),
        ("chat_template.jinja", r"the tokenizer has no chat template; add chat_template\.jinja"),
    ],
)
def test_a_folder_that_lacks_a_file_is_refused(folder, role, lost, words):
    (folder / lost).unlink()
    said = refusal("scale=local", "path=a/b", f"model.{role}.path={folder}")
    assert re.search(rf"^model\.{role}\.path = {folder}: {words}", said)


def test_a_template_may_lie_in_the_settings_of_the_tokenizer_and_pickles_must_be_allowed(folder):
    (folder / "chat_template.jinja").unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    words = "scale=local", "path=a/b", f"model.adapter.path={folder}"
    assert "its weights are pickles" in refusal(*words)
    checkpoints.check(configuration(*words, "model.adapter.allow_pickle=true"), ROOT)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("evaluate.solver", []),
        ("evaluate.reward_policy", []),
        ("evaluate.judges.one", ["evaluate.labels=judge"]),
    ],
)
def test_a_model_that_measures_must_be_there_unless_a_stage_makes_it(folder, key, words):
    def asked(path: object) -> tuple[str, ...]:
        return "scale=local", "path=a/b", *words, f"+{key}.path={path}"

    near = folder.with_name("chekpoint")
    assert refusal(*asked(near)) == f"{key}.path = {near}: no such folder; did you mean {folder}?"
    (folder / "tokenizer.json").unlink()
    assert refusal(*asked(folder)).startswith(f"{key}.path = {folder}: no tokenizer")
    for made in ("runs/full/seed-9/policy", ROOT / "runs" / "full", "models/policy"):
        checkpoints.check(configuration(*asked(made)), ROOT)


def test_updates_that_bfloat16_weights_round_away_are_warned_of():
    """The paper's learning rate is a sixtieth of the distance between two bfloat16 numbers near a weight of 0.02."""
    low = torch.full((1000,), 0.02, dtype=torch.bfloat16)
    assert torch.equal(low + 1e-6, low)
    assert not torch.equal(low + 2 * checkpoints.LOWEST_NARROW_LR, low)

    def keys(*overrides: str) -> list[str]:
        found = checkpoints.warnings(configuration("scale=paper", *overrides), ROOT)
        return [text.partition(": ")[0] for text in found]

    narrow = "train.precision=bf16-true"
    assert keys(narrow) == ["train.precision = bf16-true"] * 2
    (said,) = checkpoints.warnings(configuration("scale=paper", "learn.reward.precision=bf16-true"), ROOT)
    assert said.startswith("learn.reward.precision = bf16-true: ")
    assert "learn.reward.lr = 1e-06" in said
    assert keys(narrow, "learn.policy.lora={rank: 8}", "learn.reward.lora={rank: 8}") == []
    assert keys(narrow, "learn.policy.lr=5e-5", "learn.reward.lr=5e-5") == []
    assert keys() == []


def test_seeds_that_would_share_an_accelerator_are_warned_of():
    def said(*words: str) -> list[str]:
        found = checkpoints.warnings(configuration("scale=paper", *words), ROOT)
        return [text for text in found if text.startswith("train.workers")]

    shared = ("train.seeds=4", "train.workers=8", "train.devices=1", "train.nodes=1", "train.strategy=auto")
    (only,) = said(*shared, "train.accelerator=auto")
    assert only.startswith("train.workers = 8: on an accelerator 4 seeds train at once on its first device")
    assert said(*shared, "train.accelerator=cpu") == said(*shared, "train.workers=1") == []
    assert said(*shared, "train.devices=2") == [], "processes that share a run train one seed at a time"
