"""What cannot be built is refused with the name that was meant, or with what is missing."""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
import torch
from stage_cases import ROOT
from transformers import MistralConfig, MistralForCausalLM

from rlanything.config import Checkpoint, parse
from rlanything.core.errors import ConfigError
from rlanything.core.types import Request, Task
from rlanything.engines import checkpoint
from rlanything.engines.placement import Role
from rlanything.engines.vllm import support
from rlanything.files.images import ImageStore
from rlanything.learn.supervised.fresh import fresh_model
from rlanything.planning import compose
from rlanything.repro.played.models import still
from rlanything.rewards.requirements import teacher
from rlanything.runs import build, families
from rlanything.runs.networks import Networks
from rlanything.stages.bootstrap.tokenizer import train_tokenizer


@pytest.fixture(scope="module")
def data() -> dict:
    return compose.compose(["scale=smoke"], ROOT)


@pytest.fixture(scope="module")
def saved(data, tmp_path_factory):
    """A folder with a tiny model and its tokenizer."""
    folder = tmp_path_factory.mktemp("models") / "policy"
    tokenizer = train_tokenizer(["you open the door 1"], 512)
    sizes = parse(data).model.embedded.model_copy(update={"hidden": 32, "intermediate": 32, "layers": 1})
    checkpoint.save(fresh_model(sizes, 512, 1, 0, 0), tokenizer, folder)
    return folder


def test_an_unknown_key_of_the_environment_is_refused_with_the_nearest_name(data):
    config = parse({**data, "env": {**data["env"], "distractor": [0, 2]}})
    with pytest.raises(ConfigError, match=r"env\.distractor: unknown; did you mean 'distractors'\?"):
        families.family(config)


def test_a_value_that_the_environment_refuses_is_reported_under_its_section(data):
    config = parse({**data, "env": {**data["env"], "engine": "no such engine"}})
    with pytest.raises(ConfigError, match=r"env: .*no such engine"):
        families.family(config)


@pytest.mark.parametrize(("context", "most"), [(None, 512), (64, 64), (4096, 512)])
def test_the_loop_and_the_engine_have_the_same_context(data, saved, monkeypatch, context, most):
    monkeypatch.setattr(support, "version", lambda: support.VERSION)
    options = {"_target_": "rlanything.engines.vllm.served.engine.VllmServers", "context": context}
    config, (_, tokenizer) = parse({**data, "engine": options}), checkpoint.load(saved)
    sizes = config.model.embedded.model_copy(update={"layers": 1, "positions": 512})
    with build.chat_model(config, fresh_model(sizes, 512, 1, 0, 0), tokenizer) as chat:
        assert chat.max_context == most
        too_long = Request((5,) * most, 0, 1)
        with pytest.raises(ValueError, match=f"{most}"):
            chat.engine.generate([too_long])


@pytest.mark.parametrize("target", ["envs.alfworld.family.NoSuchFamily", "no_such_module.Family", ""])
def test_a_class_that_cannot_be_found_is_named(data, target):
    config = parse({**data, "env": {"_target_": target}})
    with pytest.raises(ConfigError, match=rf"env\._target_ = '{target}'"):
        families.family(config)


def test_what_the_program_gives_cannot_be_set_by_the_configuration(data, saved):
    model, tokenizer = checkpoint.load(saved)
    config = parse({**data, "engine": {**data["engine"], "model": "mine"}})
    with pytest.raises(ConfigError, match=r"engine\.model: unknown"):
        build.chat_model(config, model, tokenizer)


def test_a_family_without_an_oracle_is_no_teacher():
    with pytest.raises(ConfigError, match=r"object has no teacher .*label_steps"):
        teacher(object())


def test_a_folder_under_the_root_is_loaded(data, saved):
    model, tokenizer = build.load(
        parse(data), Checkpoint(path="models/policy"), _root(saved), Role.FROZEN, "policy"
    )
    assert model.config.hidden_size == 32
    assert tokenizer.chat_template


def test_who_samples_and_who_replays_end_a_reply_at_every_token_that_the_checkpoint_declares(
    data, saved, tmp_path
):
    shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
    _, tokenizer = checkpoint.load(saved)
    own, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
    for declared, expected in (([own], (own,)), ([own, pad], (own, pad)), (None, (own,))):
        (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": declared}))
        if declared is None:
            (tmp_path / "generation_config.json").unlink()
        source, config = Checkpoint(path=str(tmp_path)), parse(data)
        loaded = build.load(config, source, tmp_path, Role.FROZEN, "policy")
        with build.chat_model(config, *loaded) as model:
            replayed = still(config, "policy", source, tmp_path, model.engine, ImageStore(tmp_path))
        assert model.chat.stop_ids == replayed.chat.stop_ids == expected


def test_a_checkpoint_that_was_not_made_is_no_name_on_the_hub(data, tmp_path):
    with pytest.raises(ConfigError, match=r"models/policy: no such folder"):
        build.load(parse(data), Checkpoint(path="models/policy"), tmp_path, Role.FROZEN, "policy")


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        ("tokenizer.json", "no tokenizer .*save its tokenizer into the same folder"),
        ("model.safetensors", "no weights"),
        ("config.json", "no configuration"),
    ],
)
def test_a_checkpoint_without_a_part_says_which_and_what_to_do(data, saved, missing, named):
    (saved / missing).rename(saved / "aside")
    try:
        with pytest.raises(ConfigError, match=rf"models/policy: {named}"):
            build.load(parse(data), Checkpoint(path="models/policy"), _root(saved), Role.FROZEN, "policy")
    finally:
        (saved / "aside").rename(saved / missing)


def _root(saved):
    (saved.parent / "models").mkdir(exist_ok=True)
    link = saved.parent / "models" / "policy"
    if not link.exists():
        link.symlink_to(saved)
    return saved.parent


def test_a_commit_that_is_not_known_is_fetched_before_a_run_is_named_after_it(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("transformers.utils.hub.hf_hub_download", lambda *a, **k: asked.append((a, k)))
    build.fetch_commit(Checkpoint(path="models/policy"), tmp_path)
    build.fetch_commit(Checkpoint(path="someone/tiny", revision="v1"), tmp_path)
    assert asked == [(("someone/tiny", "config.json"), {"revision": "v1"})]
    snapshot = tmp_path / "hub" / "models--someone--tiny" / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    build.fetch_commit(Checkpoint(path="someone/tiny", revision="0" * 40), tmp_path)
    assert len(asked) == 1, "what the cache knows is not asked for"


def test_a_name_that_cannot_be_fetched_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(
        ConfigError, match=r"someone/tiny: neither a folder.*nor can.*HF_HUB_OFFLINE=0 lets it be"
    ):
        build.fetch_commit(Checkpoint(path="someone/tiny"), tmp_path)


def test_a_model_that_is_loaded_convolves_in_full_float32_on_a_gpu(data, saved):
    """Also where the model itself stays on the CPU until the strategy divides it."""
    before = torch.backends.cudnn.allow_tf32
    try:
        torch.backends.cudnn.allow_tf32 = True
        build.load(parse(data), Checkpoint(path=str(saved)), saved.parent, Role.TRAINED, "policy")
        assert not torch.backends.cudnn.allow_tf32
    finally:
        torch.backends.cudnn.allow_tf32 = before


@pytest.mark.parametrize("name", ["policy", "reward"])
@pytest.mark.parametrize("lora", [None, {"rank": 2, "alpha": 4.0}], ids=["all weights", "lora"])
def test_a_checkpoint_that_cannot_be_trained_is_refused_when_it_is_loaded_to_learn_and_not_to_sample(
    data, saved, tmp_path, name, lora
):
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    windowed = MistralForCausalLM(MistralConfig(vocab_size=512, num_key_value_heads=1, **sizes))
    checkpoint.save(windowed, checkpoint.load(saved)[1], tmp_path)
    section = {**data["learn"][name], "lora": lora}
    engine = {"_target_": "rlanything.engines.transformers.TransformersEngine"}
    config = parse({**data, "learn": {**data["learn"], name: section}, "engine": engine})
    source = Checkpoint(path=str(tmp_path))
    with ExitStack() as engines:
        networks = Networks(config, ROOT, 0, engines)
        said = rf"model\.{name}\.path = {tmp_path}: its config\.json has sliding_window = 4096, .*; allowed: null"
        with pytest.raises(ConfigError, match=said):
            networks.learning(source, name, lambda *_: None)
        assert networks.still(source, name).network.config.sliding_window == 4096


def test_each_model_of_a_run_has_the_format_of_its_own_precision_and_of_its_role(data, saved):
    """What trains stays in float32: bfloat16 would round its updates away."""
    reward = {**data["learn"]["reward"], "precision": "32-true"}
    train = {**data["train"], "precision": "bf16-mixed"}
    config = parse({**data, "learn": {**data["learn"], "reward": reward}, "train": train})
    source, root = Checkpoint(path=str(saved)), saved.parent
    with ExitStack() as engines:
        networks = Networks(config, root, 0, engines)
        learning = {n: networks.learning(source, n, lambda *_: None).network for n in ("policy", "reward")}
        still = {n: networks.frozen(source, n)[0] for n in ("policy", "reward", "adapter")}
        measured = {}
        for name in ("policy", "reward"):
            measured[name], chat = build.measured(config, name, source, root)
            engines.enter_context(chat)
        assert {n: model.dtype for n, model in learning.items()} == dict.fromkeys(learning, torch.float32)
        formats = {"policy": torch.bfloat16, "reward": torch.float32, "adapter": torch.bfloat16}
        assert {n: model.dtype for n, model in still.items()} == formats
        assert {n: model.dtype for n, model in measured.items()} == {n: formats[n] for n in measured}


def made(*payloads: dict) -> SimpleNamespace:
    """A family whose tasks have these payloads."""
    return SimpleNamespace(make=lambda *_: [Task("rooms", "open it", payload) for payload in payloads])


def test_tasks_that_json_gives_back_are_taken_as_they_are():
    assert [task.payload for task in families.make(made({"at": [1]}), "train", 1, 0)] == [{"at": [1]}]


@pytest.mark.parametrize(
    ("payload", "place"),
    [
        ({"at": (1, 2)}, r"payload\['at'\]"),
        ({"doors": {1: "red"}}, "the key 1"),
        ({"s": {2}}, r"payload\['s'\]"),
    ],
)
def test_a_task_that_json_gives_back_as_another_one_is_named_with_its_split_and_value(payload, place):
    with pytest.raises(ConfigError, match=f"task 1 of split train .'open it'.*{place}"):
        families.make(made({"at": [1]}, payload), "train", 2, 0)
