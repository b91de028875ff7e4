"""The sizes of a model that nobody loads: against the loaded one, and from files that are anybody's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.plan import measured_weights, random_model
from rlanything.config import Checkpoint
from rlanything.core.errors import ConfigError
from rlanything.planning.costs.sizes import DECLARED, from_fields, read_size

ROOT = Path(__file__).parents[2]
MODELS = [
    ("qwen2", {}),
    ("qwen2", {"tie_word_embeddings": False, "num_key_value_heads": 4}),
    ("qwen3", {"head_dim": 16}),
    ("llama", {"attention_bias": True, "mlp_bias": True}),
    ("llama", {"tie_word_embeddings": False}),
]
PUBLISHED = {
    "Qwen/Qwen2.5-0.5B-Instruct": 494_032_768,
    "Qwen/Qwen2.5-1.5B-Instruct": 1_543_714_304,
    "Qwen/Qwen2.5-7B-Instruct": 7_615_616_512,
    "Qwen/Qwen2.5-14B-Instruct": 14_770_033_664,
    "Qwen/Qwen3-4B": 4_022_468_096,
}
"""Parameters as the model cards' files hold them."""


def size_of(folder: Path):
    return read_size(Checkpoint(path=str(folder)), "model.policy", ROOT)


@pytest.mark.parametrize(("name", "sizes"), MODELS)
@pytest.mark.parametrize("shard", ["5GB", "300KB"])
def test_parameters_and_bytes_are_those_of_the_loaded_model(tmp_path, name, sizes, shard):
    model = random_model(name, **sizes)
    model.save_pretrained(str(tmp_path), max_shard_size=shard)
    found = size_of(tmp_path)
    assert (found.parameters, found.disk) == measured_weights(model)
    assert found.source == "config.json and safetensors headers"


@pytest.mark.parametrize(("name", "sizes"), MODELS)
def test_without_weights_the_configuration_gives_the_same_count(tmp_path, name, sizes):
    model = random_model(name, **sizes)
    model.config.save_pretrained(str(tmp_path))
    found = size_of(tmp_path)
    assert (found.parameters, found.disk) == (measured_weights(model)[0], None)


def test_the_declared_sizes_give_the_published_parameters():
    declared = json.loads((ROOT / DECLARED).read_text())
    assert {name: from_fields(of, name, "").parameters for name, of in declared.items()} == PUBLISHED


def test_a_name_on_the_hub_is_found_in_its_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    place = tmp_path / "models--someone--tiny"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("0123abc")
    model = random_model("qwen2")
    model.save_pretrained(str(place / "snapshots" / "0123abc"))
    found = read_size(Checkpoint(path="someone/tiny"), "model.policy", ROOT)
    assert (found.parameters, found.disk) == measured_weights(model)


def test_what_is_not_at_hand_is_named_with_the_command_that_fetches_it(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(
        ConfigError, match=r"model\.policy\.path = someone/new: .*`hf download someone/new config.js"
    ):
        read_size(Checkpoint(path="someone/new"), "model.policy", ROOT)
    with pytest.raises(ConfigError, match=r"model\.policy\.path = models/none: no config\.json there"):
        read_size(Checkpoint(path="models/none"), "model.policy", tmp_path)


def test_an_unknown_architecture_without_weights_says_what_to_download(tmp_path):
    fields = {**json.loads((ROOT / DECLARED).read_text())["Qwen/Qwen3-4B"], "model_type": "mamba"}
    (tmp_path / "config.json").write_text(json.dumps(fields))
    with pytest.raises(ConfigError, match=r"model_type = 'mamba'.*download model\.safetensors"):
        size_of(tmp_path)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (-1, "-1"), ("96", "96"), (True, "True"), (1 << 60, str(1 << 60)), (None, "None")],
)
def test_an_entry_that_is_no_size_is_refused_with_its_name(tmp_path, value, shown):
    fields = {**json.loads((ROOT / DECLARED).read_text())["Qwen/Qwen3-4B"], "hidden_size": value}
    (tmp_path / "config.json").write_text(json.dumps(fields))
    with pytest.raises(ConfigError, match=rf"hidden_size = {shown}: must be a whole number"):
        size_of(tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff" * 16, "no safetensors file"),
        (b"", "no safetensors file"),
        ((100).to_bytes(8, "little") + b"{}", "cut off"),
        ((2).to_bytes(8, "little") + b"[]", "no JSON object"),
        ((12).to_bytes(8, "little") + b'{"a":{"b":1}', "not JSON"),
    ],
)
def test_a_damaged_header_is_refused_with_its_file(tmp_path, data, message):
    random_model("qwen2").config.save_pretrained(str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(ConfigError, match=rf"model\.safetensors: .*{message}"):
        size_of(tmp_path)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"dtype": "F32", "shape": [-1]}, "no shape"),
        ({"dtype": "F32", "shape": [1e99]}, "no shape"),
        ({"dtype": "X", "shape": [1]}, "dtype = 'X'; known: F64"),
        (7, "no shape"),
    ],
)
def test_a_tensor_that_is_none_is_named(tmp_path, entry, message):
    random_model("qwen2").config.save_pretrained(str(tmp_path))
    header = json.dumps({"__metadata__": {}, "w": entry}).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(ConfigError, match=rf"model\.safetensors: tensor 'w': {message}"):
        size_of(tmp_path)


def test_an_index_cannot_name_a_file_elsewhere(tmp_path):
    random_model("qwen2").config.save_pretrained(str(tmp_path))
    names = json.dumps({"weight_map": {"w": "../../etc/model.safetensors"}})
    (tmp_path / "model.safetensors.index.json").write_text(names)
    with pytest.raises(ConfigError, match=r"index\.json: weight_map"):
        size_of(tmp_path)
