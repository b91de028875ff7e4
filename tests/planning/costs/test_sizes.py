"""The sizes of a model that nobody loads: against the loaded one, and from files that are anybody's."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.plan.models import random_model
from rlanything.config import Checkpoint
from rlanything.core.errors import ConfigError
from rlanything.planning.costs.sizes import DECLARED, from_fields, read_size

ROOT = Path(__file__).parents[3]
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
    "Qwen/Qwen2.5-3B-Instruct": 3_085_938_688,
    "Qwen/Qwen2.5-7B-Instruct": 7_615_616_512,
    "Qwen/Qwen2.5-14B-Instruct": 14_770_033_664,
    "Qwen/Qwen2.5-32B-Instruct": 32_763_876_352,
    "Qwen/Qwen3-0.6B": 596_049_920,
    "Qwen/Qwen3-1.7B": 1_720_574_976,
    "Qwen/Qwen3-4B": 4_022_468_096,
    "Qwen/Qwen3-8B": 8_190_735_360,
    "Qwen/Qwen3-14B": 14_768_307_200,
    "Qwen/Qwen3-32B": 32_762_123_264,
    "Qwen/Qwen3-VL-2B-Instruct": 2_127_532_032,
    "Qwen/Qwen3-VL-4B-Instruct": 4_437_815_808,
    "Qwen/Qwen3-VL-8B-Thinking": 8_767_123_696,
    "Qwen/Qwen3-VL-32B-Thinking": 33_357_390_064,
    "meta-llama/Llama-3.2-1B-Instruct": 1_235_814_400,
    "meta-llama/Llama-3.2-3B-Instruct": 3_212_749_824,
    "meta-llama/Llama-3.1-8B-Instruct": 8_030_261_248,
    "meta-llama/Llama-3.1-70B-Instruct": 70_553_706_496,
    "meta-llama/Llama-3.3-70B-Instruct": 70_553_706_496,
}
"""Parameters as the model cards' files hold them; an output layer that a tied embedding repeats counts once."""


def size_of(folder: Path):
    return read_size(Checkpoint(path=str(folder)), "model.policy", ROOT)


@pytest.mark.parametrize(("name", "sizes"), MODELS)
def test_the_configuration_gives_the_parameters_of_the_loaded_model(tmp_path, name, sizes):
    model = random_model(name, **sizes)
    model.config.save_pretrained(str(tmp_path))
    found = size_of(tmp_path)
    assert found.parameters == sum(p.numel() for p in model.parameters())
    assert found.tied is model.config.tie_word_embeddings
    assert found.source == "config.json"


@pytest.mark.long
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
    assert found.parameters == model.num_parameters()


def test_what_is_not_at_hand_is_named_with_the_command_that_fetches_it(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(
        ConfigError, match=r"model\.policy\.path = someone/new: .*`hf download someone/new config.js"
    ):
        read_size(Checkpoint(path="someone/new"), "model.policy", ROOT)
    (tmp_path / "models" / "some").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"model\.policy\.path = models/some: no config\.json there"):
        read_size(Checkpoint(path="models/some"), "model.policy", tmp_path)
    with pytest.raises(
        ConfigError, match=r"path = models/sone: no such folder; did you mean \S+/models/some\?"
    ):
        read_size(Checkpoint(path="models/sone"), "model.policy", tmp_path)
    with pytest.raises(
        ConfigError, match=r"path = /nowhere: no such folder; give a folder or a name on the hub"
    ):
        read_size(Checkpoint(path="/nowhere"), "model.policy", tmp_path)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model_type": "unheard_of"}, "no model can be built from its config.json"),
        ({"hidden_act": "import os"}, "no model can be built from its config.json"),
        (
            {"num_hidden_layers": 100_000},
            "num_hidden_layers = 100000: must be a whole number from 1 to 1,000",
        ),
    ],
)
def test_a_configuration_of_no_model_is_refused_with_its_place(tmp_path, changed, message):
    fields = {**json.loads((ROOT / DECLARED).read_text())["Qwen/Qwen3-4B"], **changed}
    (tmp_path / "config.json").write_text(json.dumps(fields))
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        size_of(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_code_that_a_configuration_names_is_not_run(tmp_path):
    fields = {**json.loads((ROOT / DECLARED).read_text())["Qwen/Qwen3-4B"], "num_hidden_layers": 2}
    named = {"auto_map": {"AutoModelForCausalLM": "evil.Model"}, "_attn_implementation": "someone/kernels"}
    sizes = []
    for more in ({}, named):
        (tmp_path / "config.json").write_text(json.dumps({**fields, **more}))
        sizes.append(size_of(tmp_path))
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (-1, "-1"), ("96", "96"), (True, "True"), (1 << 60, str(1 << 60)), (None, "None")],
)
def test_an_entry_that_is_no_size_is_refused_with_its_name(tmp_path, value, shown):
    fields = {**json.loads((ROOT / DECLARED).read_text())["Qwen/Qwen3-4B"], "hidden_size": value}
    (tmp_path / "config.json").write_text(json.dumps(fields))
    with pytest.raises(ConfigError, match=rf"hidden_size = {shown}: must be a whole number"):
        size_of(tmp_path)
