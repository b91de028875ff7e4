"""Folders that load give the same model back; folders that do not say what they lack."""

from __future__ import annotations

import json

import engine_cases as cases
import pytest
import torch
from safetensors.torch import load_file, save_file

from rlanything.core.types import Request
from rlanything.engines import checkpoint
from rlanything.engines.chat import Chat
from rlanything.engines.native import NativeEngine


@pytest.fixture
def folder(tmp_path):
    checkpoint.save(cases.qwen2(), cases.fresh_tokenizer(cases.CHATML), tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("make", [cases.qwen2, cases.llama])
def test_a_saved_model_says_the_same(make, tmp_path):
    model, tokenizer = make(), cases.fresh_tokenizer(cases.QWEN25)
    checkpoint.save(model, tokenizer, tmp_path)
    again, tokenizer_again = checkpoint.load(tmp_path)
    assert type(again) is type(model)
    assert again.dtype == torch.float32
    assert not again.training
    prompt = Chat(tokenizer).start([{"role": "user", "content": "go to desk 1"}])
    assert Chat(tokenizer_again).start([{"role": "user", "content": "go to desk 1"}]) == prompt
    requests = [Request(prompt, seed, 8) for seed in range(4)]
    completions = [NativeEngine(m, tokenizer).generate(requests) for m in (model, again)]
    assert completions[0] == completions[1]


@pytest.mark.parametrize("offline", [False, True])
def test_a_model_that_was_loaded_is_saved_with_the_same_bytes(folder, tmp_path, monkeypatch, offline):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", offline)
    checkpoint.save(*checkpoint.load(folder), tmp_path / "again")
    before, after = ({p.name: p.read_bytes() for p in f.iterdir()} for f in (folder, tmp_path / "again"))
    assert before == after


def test_another_dtype(folder):
    assert checkpoint.load(folder, dtype=torch.bfloat16)[0].dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        ("config.json", "no configuration"),
        ("model.safetensors", "no weights"),
        ("tokenizer.json", "no tokenizer"),
        ("chat_template.jinja", "no chat template"),
    ],
)
def test_what_is_missing_is_named(folder, lost, words):
    (folder / lost).unlink()
    with pytest.raises(checkpoint.CheckpointError, match=words) as raised:
        checkpoint.load(folder)
    assert str(folder) in str(raised.value)
    assert any(advice in str(raised.value) for advice in ("save", "add", "pull"))


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(checkpoint.CheckpointError, match="no such folder"):
        checkpoint.load(tmp_path / "nothing")


def test_weights_that_are_only_a_pointer(folder):
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(checkpoint.CheckpointError, match="cannot be loaded"):
        checkpoint.load(folder)


def test_weights_that_are_not_all_there(folder):
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(checkpoint.CheckpointError, match=r"lack model\.layers\.1\.mlp\.up_proj\.weight"):
        checkpoint.load(folder)


def test_an_unknown_architecture(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "never_heard_of"}))
    with pytest.raises(checkpoint.CheckpointError, match="never_heard_of"):
        checkpoint.load(folder)
