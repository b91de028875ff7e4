"""LoRA in a model: where its weights are, what engines see of them, and what is refused."""

from __future__ import annotations

import json

import engine_cases as cases
import pytest
import torch
from lora_cases import KEY, REQUESTS, SMALL, learned, moved
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, PreTrainedModel

from rlanything.config import LoraConfig
from rlanything.core.errors import ConfigError
from rlanything.engines import checkpoint
from rlanything.engines.lora import injection
from rlanything.engines.lora.files import save_lora
from rlanything.engines.lora.injection import inject, take_over, trained
from rlanything.engines.lora.merging import frozen_state, lora_rank, merge, merged_parameters, merged_state
from rlanything.engines.lora.sharing import twin

IDS = torch.tensor([[5, 6, 7, 90, 200, 31, 12]])


@pytest.fixture(autouse=True)
def _needs_peft():
    pytest.importorskip("peft", reason="needs peft: pip install '.[lora]'")


@torch.no_grad()
def logits(model: PreTrainedModel) -> torch.Tensor:
    return model(IDS).logits


@pytest.mark.parametrize("architecture", cases.ARCHITECTURES)
def test_engines_get_the_model_with_its_products_added(architecture):
    model = cases.ARCHITECTURES[architecture]()
    plain, names = twin(model), [name for name, _ in model.named_parameters()]
    before = logits(plain)
    inject(model, SMALL, 3, KEY)
    assert torch.equal(logits(model), before)
    moved(model, 1)
    assert list(merged_parameters(model)) == names
    assert merged_state(model).keys() == plain.state_dict().keys()
    merged = twin(plain)
    merge(model, merged)
    assert torch.allclose(logits(merged), logits(model), atol=1e-4)
    assert float((logits(merged) - before).abs().max()) > 0.1
    assert torch.equal(logits(plain), before)  # it shares weights with the model, and they are as they were


@pytest.mark.parametrize("name", cases.ENGINES)
def test_every_engine_samples_the_merged_model_also_after_an_update(name):
    """vLLM probes it as well: the probe compares with the model as it is trained."""
    model, plain = cases.qwen2(), cases.qwen2()
    learned(model)
    with cases.opened(name, model) as engine:
        for version in (0, 1):
            moved(model, version)
            engine.sync(version)
            merge(model, plain)
            with cases.opened("transformers", plain) as reference:
                known = reference.generate(REQUESTS)
            found = engine.generate(REQUESTS)
            assert [completion.ids for completion in found] == [completion.ids for completion in known]
            for request, completion in zip(REQUESTS, found, strict=True):
                assert cases.error_of(model, request, completion) < cases.tolerance(engine)


def test_the_frozen_weights_have_the_names_and_bits_of_the_model_without_lora():
    model = learned(cases.qwen2())
    plain = cases.qwen2()
    for found in (frozen_state(model), frozen_state(plain)):
        assert found.keys() == plain.state_dict().keys()
        assert all(torch.equal(found[name], value) for name, value in plain.state_dict().items())
    assert (lora_rank(model), lora_rank(plain)) == (4, 0)


def test_the_first_values_depend_on_the_seed_alone():
    torch.manual_seed(0)
    models = [twin(cases.qwen2()) for _ in range(3)]
    torch.manual_seed(5)
    state = torch.get_rng_state()
    for model, seed in zip(models, (3, 3, 4), strict=True):
        inject(model, SMALL, seed, KEY)
    assert torch.equal(torch.get_rng_state(), state)
    one, same, other = (list(trained(model).values()) for model in models)
    assert all(torch.equal(a, b) for a, b in zip(one, same, strict=True))
    assert (
        sum(torch.equal(a, b) for a, b in zip(one, other, strict=True)) == len(one) // 2
    )  # the factors B: 0


def test_two_models_with_lora_over_the_same_weights_do_not_move_each_other():
    base = cases.qwen2().requires_grad_(False)
    policy, reward = learned(twin(base)), twin(base)
    inject(reward, SMALL, 4, KEY)
    assert torch.equal(logits(reward), logits(base))
    held = {p.data_ptr() for p in base.parameters()}
    for model in (policy, reward):
        frozen = {p.data_ptr() for p in model.parameters() if not p.requires_grad}
        assert frozen == held
    before = logits(reward)
    merge(policy, twin(base))
    moved(policy, 2)
    assert torch.equal(logits(reward), before)


def test_a_bfloat16_model_keeps_its_weights_and_gets_float32_products(tmp_path):
    """Updates far below the precision of bfloat16 reach the merged weights and the saved checkpoint."""
    base = cases.qwen2().to(torch.bfloat16)
    plain = twin(base)
    inject(base, SMALL, 3, KEY)
    assert {value.dtype for value in trained(base).values()} == {torch.float32}
    with torch.no_grad():
        for name, value in trained(base).items():
            if "lora_B" in name:
                value.fill_(1e-6)
    merge(base, plain)
    checkpoint.save(plain, cases.tokenizer(), tmp_path)
    read, _ = checkpoint.load(tmp_path)
    name = "model.layers.0.self_attn.q_proj.weight"
    first = cases.qwen2().to(torch.bfloat16).state_dict()[name].float()
    change = float((read.state_dict()[name] - first).abs().max())
    assert 0 < change < 1e-4
    assert torch.equal(read.state_dict()[name], merged_state(base)[name])


def test_the_files_are_those_that_peft_reads_and_always_the_same_bytes(tmp_path):
    from peft import PeftModel

    model, plain = cases.qwen2(), cases.qwen2()
    learned(model)
    for folder in ("one", "two"):
        save_lora(model, tmp_path / folder, "models/policy")
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == ["adapter_config.json", "adapter_model.safetensors"]
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    settings = json.loads((tmp_path / "one" / "adapter_config.json").read_text())
    assert settings["base_model_name_or_path"] == "models/policy"
    assert settings["target_modules"] == sorted(settings["target_modules"])
    read = PeftModel.from_pretrained(plain, tmp_path / "one")
    assert torch.allclose(logits(read), logits(model), atol=1e-6)


def test_weights_of_another_model_are_not_taken_over():
    model = learned(cases.qwen2())
    weights = {name: value.detach().clone() for name, value in trained(model).items()}
    gone = weights.pop(next(iter(weights)))
    with pytest.raises(ValueError, match=r"not LoRA's weights of this model: .*q_proj"):
        take_over(model, weights)
    assert gone.numel() > 0


def test_what_cannot_have_lora_is_refused_with_what_can():
    with pytest.raises(ConfigError) as caught:
        inject(cases.qwen2(), LoraConfig(rank=65), 0, KEY)
    assert str(caught.value).startswith(
        "learn.policy.lora.rank = 65: must be at most 48, the smaller side of model.layers.0.mlp.gate_proj"
    )
    strange = GPT2LMHeadModel(GPT2Config(vocab_size=32, n_embd=16, n_layer=1, n_head=2))
    with pytest.raises(
        ConfigError, match=r"lora.targets = q_proj: GPT2LMHeadModel has no such matrix; it has none"
    ):
        inject(strange, SMALL, 0, KEY)


def test_a_missing_peft_is_named_with_what_to_install(monkeypatch):
    monkeypatch.setattr(injection.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError) as caught:
        inject(cases.qwen2(), SMALL, 0, KEY)
    assert str(caught.value) == (
        "learn.policy.lora: needs peft, which is not installed; install it with `pip install '.[lora]'`"
    )


def test_a_merged_checkpoint_is_an_ordinary_one(tmp_path):
    model, plain = cases.qwen2(), cases.qwen2()
    learned(model)
    merge(model, plain)
    checkpoint.save(plain, cases.tokenizer(), tmp_path)
    read = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    assert torch.allclose(logits(read), logits(model), atol=1e-4)
    assert read.lm_head.weight is read.model.embed_tokens.weight
