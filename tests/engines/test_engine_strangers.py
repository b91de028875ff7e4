"""Checkpoints of strangers: their code is never run, and what is broken or endless in them is an error."""

from __future__ import annotations

import json
import os
import resource
import time
from pathlib import Path

import engine_cases as cases
import pytest
import torch
from safetensors.torch import load_file, save_file

from rlanything.engines import checkpoint, untrusted_load

CANARY = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n"
CLASSES = "class C:\n    from_pretrained = classmethod(lambda cls, *a, **k: cls())\n"


@pytest.fixture
def folder(tmp_path) -> Path:
    checkpoint.save(cases.qwen2(), cases.fresh_tokenizer(cases.CHATML), tmp_path / "model")
    return tmp_path / "model"


def edit(path: Path, **values: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def refusal(folder: Path) -> str:
    with pytest.raises(checkpoint.CheckpointError) as raised:
        checkpoint.load(folder)
    assert str(folder) in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("known", [False, True])
def test_code_in_a_folder_is_neither_run_nor_asked_about(folder, known, monkeypatch):
    (folder / "code.py").write_text(CANARY + CLASSES)
    names = {"AutoConfig": "code.C", "AutoModelForCausalLM": "code.C", "AutoTokenizer": ["code.C", "code.C"]}
    edit(folder / "config.json", auto_map=names, **({} if known else {"model_type": "theirs"}))
    edit(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": ["code.C", "code.C"]})
    (folder / "custom_generate").mkdir()
    (folder / "custom_generate" / "generate.py").write_text(CANARY + "def generate(**_): pass\n")
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked on standard input"))
    if known:  # the architecture is one of transformers: its own code is used
        assert type(checkpoint.load(folder)[0]).__module__.startswith("transformers.")
    else:
        assert "needs code of its own (auto_map), which is never run" in refusal(folder)
    assert list(folder.rglob("ran")) == []


class Bomb:
    """Leaves a file when it is unpickled."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.place),)


def test_pickled_weights_need_the_user_s_word_and_run_nothing_even_then(folder, tmp_path):
    model, _ = checkpoint.load(folder)
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    assert "its weights are pickles (pytorch_model*.bin)" in refusal(folder)
    again, _ = checkpoint.load(folder, allow_pickle=True)
    assert torch.equal(again.lm_head.weight, model.lm_head.weight)
    torch.save({"bomb": Bomb(tmp_path / "ran")}, folder / "pytorch_model.bin")
    with pytest.raises(checkpoint.CheckpointError, match="cannot be loaded"):
        checkpoint.load(folder, allow_pickle=True)
    assert not (tmp_path / "ran").exists()


def test_an_adapter_beside_a_model_is_refused(folder):
    """With peft, transformers would apply it, and save the adapter alone afterwards."""
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA", "target_modules": ["q_proj"]}')
    assert "an adapter lies beside the model (adapter_config.json); merge it" in refusal(folder)


@pytest.mark.parametrize("pickled", [False, True])
def test_a_configuration_that_names_a_file_of_weights_is_refused(folder, tmp_path, pickled):
    edit(folder / "config.json", transformers_weights="adapter_model.bin")
    torch.save({"bomb": Bomb(tmp_path / "ran")}, folder / "adapter_model.bin")
    with pytest.raises(checkpoint.CheckpointError, match="transformers_weights = 'adapter_model"):
        checkpoint.load(folder, allow_pickle=pickled)


@pytest.mark.parametrize(
    "name", ["evil.bin", "../model.safetensors", "/tmp/model.safetensors", "a/b.safetensors", 5, None]
)
def test_an_index_names_safetensors_beside_it_only(folder, name):
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": {"lm_head.weight": name}})
    )
    assert f"model.safetensors.index.json: {str(name)!r} is no *.safetensors beside it" in refusal(folder)


@pytest.mark.parametrize("tied", [False, True])
def test_weights_in_several_files_are_read(folder, tied):
    model = cases.qwen2(tied=tied)
    model.save_pretrained(str(folder), max_shard_size="20KB")
    (folder / "model.safetensors").unlink(missing_ok=True)
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    again, _ = checkpoint.load(folder)
    assert torch.equal(again.lm_head.weight, model.lm_head.weight)


def test_a_model_that_is_far_larger_than_its_weights_is_refused_before_it_is_made(folder):
    weights = load_file(folder / "model.safetensors")
    save_file(
        {name: tensor for name, tensor in weights.items() if ".mlp." not in name},
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )
    edit(folder / "config.json", intermediate_size=2**21)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "parameters, and its files of weights hold" in refusal(folder)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KB


def test_a_name_on_the_hub_is_looked_at_in_the_cache(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    place = tmp_path / "hub" / "models--someone--tiny"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("0" * 40)
    snapshot = place / "snapshots" / ("0" * 40)
    snapshot.parent.mkdir()
    folder.rename(snapshot)
    assert untrusted_load.why_unusable("someone/tiny", None) == ""
    monkeypatch.setattr(untrusted_load, "PER_BYTE", 0)
    assert "its files of weights hold" in untrusted_load.why_unusable("someone/tiny", None)
    (snapshot / "adapter_config.json").write_text("{}")
    assert "an adapter lies beside the model" in untrusted_load.why_unusable("someone/tiny", None)


LOOP = "{% for i in range(99999) %}"
ENDLESS = LOOP * 3 + "x" + "{% endfor %}" * 3


@pytest.mark.long
@pytest.mark.parametrize(
    ("template", "words"),
    [
        (ENDLESS, "more than 2 s of CPU"),
        ("{{ 'a' * 10**11 }}", ""),
        ("{% set ns = namespace(x='a') %}" + LOOP + "{% set ns.x = ns.x ~ ns.x %}{% endfor %}", ""),
        (cases.CHATML + "x" * 70_000, "tokens of two short messages"),
        ("{% if %}", "Expected"),
        ("{{ raise_exception('no system role') }}", "no system role"),
        ("{{ messages.nothing.at.all }}", "has no attribute 'nothing'"),
        ("<|im_start|>{{ messages[0].content }}<|im_end|>", "leaves out an assistant's message"),
        (
            "{% for m in messages %}{{ m.content }}{% endfor %}",
            "must end an assistant's message with one special token",
        ),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", ""),
        ("", "no chat template"),
    ],
    ids=lambda value: value[:24],
)
def test_a_broken_or_endless_template_is_an_error(folder, template, words, monkeypatch):
    monkeypatch.setattr(untrusted_load, "CPU_S", 2)
    (folder / "chat_template.jinja").write_text(template)
    started = time.process_time()
    assert words in refusal(folder)
    assert time.process_time() - started < 10  # of this process: the child did the work


DAMAGE = {
    "config.json": [
        b"{", b"[]", b"null", b"\xff\xfe{\x00", b"[" * 100_000, b'{"model_type": 5}', b"",
        {"hidden_size": "many"}, {"hidden_size": -1}, {"hidden_size": 10**9}, {"num_hidden_layers": 10**9},
        {"num_hidden_layers": None}, {"num_attention_heads": 0}, {"num_attention_heads": 5}, {"vocab_size": 7},
        {"rope_parameters": "x"}, {"hidden_act": "never"}, {"torch_dtype": "float99"},
    ],
    "tokenizer.json": [
        b"{", b"{}", b"null", b"\xff\xfe", b"[" * 100_000, b"",
        {"model": None}, {"added_tokens": 3}, {"pre_tokenizer": {"type": "Never"}}, {"version": "9.9"},
        {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": False}},
    ],
    "tokenizer_config.json": [
        b"{", b"[]", b"\xff\xfe", b"[" * 100_000,
        {"tokenizer_class": "subprocess.Popen"}, {"chat_template": 5},
    ],
    "model.safetensors": [b"", b"\xff" * 64, b"\x02\x00\x00\x00\x00\x00\x00\x00{}"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        pytest.param(name, damage, id=f"{name}-{str(damage)[:40]}")
        for name, kinds in DAMAGE.items()
        for damage in kinds
    ],
)
def test_a_damaged_file_is_refused_by_the_folder_s_name_or_does_no_harm(folder, name, damage):
    if isinstance(damage, bytes):
        (folder / name).write_bytes(damage)
    else:
        edit(folder / name, **damage)
    try:
        checkpoint.load(folder)
    except checkpoint.CheckpointError as error:
        said = str(error)
    else:
        said = ""
    assert not said or str(folder) in said


@pytest.mark.parametrize("name", ["added_tokens.json", "tokenizer.json"])
def test_a_pipe_is_no_file_of_a_checkpoint(folder, name):
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    assert f"{name}: not a regular file" in refusal(folder)
