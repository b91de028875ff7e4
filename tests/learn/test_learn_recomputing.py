"""Gradient checkpointing: the same gradients with less memory, and nothing of it where a model samples."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from learn_cases import END, FAST, Stops, dialogue, judged, lesson, qwen2, recorded, verdicts
from torch import Tensor
from trainer_cases import Stage, furthest
from transformers import OPTConfig, OPTForCausalLM, PreTrainedModel

from benchmarks.plan.models import SEEING, seeing_model
from rlanything.config import LearnConfig, LoraConfig
from rlanything.core.errors import ConfigError
from rlanything.core.types import Request
from rlanything.engines.lora.injection import inject, trained
from rlanything.engines.native import NativeEngine
from rlanything.engines.transformers import TransformersEngine
from rlanything.learn.losses import pack, target_logprobs
from rlanything.learn.module import JointModule
from rlanything.learn.packing import Row, policy_rows, reward_rows
from rlanything.learn.recomputing import allow_recomputing, recomputing

WANTED = FAST.model_copy(update={"gradient_checkpointing": True})


def rows(kind: str, model: PreTrainedModel) -> list[Row]:
    made = {
        "conversations": [row for s in range(3) for row in policy_rows(lesson(dialogue(s)), "step")],
        "tree": reward_rows(verdicts(judged(1)), "step"),
    }
    return recorded(made[kind], model)


def gradients(model: PreTrainedModel, kind: str) -> tuple[list[Tensor], int]:
    """Gradients of a micro-batch, and bytes that autograd keeps for its backward pass."""
    batch, kept = pack(rows(kind, model)), dict[int, int]()

    def remember(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(remember, lambda tensor: tensor):
        loss = (batch.weight_n * target_logprobs(model, batch)).sum()
    loss.backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None], sum(kept.values())


@pytest.mark.parametrize("kind", ["conversations", "tree"])
def test_the_gradients_are_the_same_and_less_is_kept(kind):
    plain, kept = gradients(qwen2(3), kind)
    model = qwen2(3)
    allow_recomputing(model)
    with recomputing(model, True):
        again, less = gradients(model, kind)
    assert len(plain) == len(again)
    for one, other in zip(plain, again, strict=True):
        assert torch.equal(one, other)
    weights = sum(p.nbytes for p in model.parameters())
    assert less - weights < 0.6 * (kept - weights)


def seen_by_lora(name: str, *, wanted: bool) -> tuple[Tensor, dict[str, Tensor], list[Tensor]]:
    """A model with LoRA learns from pictures: the loss, gradients by name, and what its vision tower gives out."""
    model, eyes, micro = seeing_model(name)
    inject(model.eval(), LoraConfig(rank=4, alpha=8.0), 0, "learn.policy.lora")
    with torch.no_grad():
        for weight in trained(model).values():
            weight += 0.01  # where B is 0, A has no gradient
    if wanted:
        allow_recomputing(model)
    given: list[Tensor] = []

    def remember(_module: Any, _inputs: Any, output: Any) -> None:
        given.extend((output.last_hidden_state, output.pooler_output))

    model.base_model.visual.register_forward_hook(remember)
    batch = pack(micro, eyes=eyes)
    with recomputing(model, wanted):
        loss = (batch.weight_n * target_logprobs(model, batch)).sum()
        loss.backward()
    return loss.detach(), {n: w.grad for n, w in trained(model).items() if w.grad is not None}, given


@pytest.mark.parametrize("name", SEEING)
def test_with_lora_nothing_is_kept_of_a_vision_tower_and_the_gradients_are_the_same(name):
    pytest.importorskip("peft", reason="needs peft: pip install '.[lora]'")
    loss, gradient, _ = seen_by_lora(name, wanted=False)
    again, found, given = seen_by_lora(name, wanted=True)
    assert given
    assert not any(value.requires_grad for value in given)
    assert torch.equal(again, loss)
    assert found.keys() == gradient.keys()
    assert len(found) == 2 * 3 * 7  # factors, layers, matrices
    for key, value in found.items():
        assert torch.equal(value, gradient[key])
        assert value.any()


def test_a_training_with_it_ends_with_the_same_weights():
    plain, saving = (Stage(config).fit(2) for config in (FAST, WANTED))
    assert furthest(plain.weights(), saving.weights()) < 1e-6
    assert saving.totals[0].keys() == plain.totals[0].keys()


@pytest.mark.parametrize("name", ["policy", "reward"])
def test_one_model_can_have_it_alone(name):
    stage = Stage(FAST.model_copy(update={"gradient_checkpointing": name}))
    used = {model: counting(getattr(stage, model)) for model in ("policy", "reward")}
    stage.fit(1)
    assert {model for model, found in used.items() if found} == {name}
    assert furthest(Stage(FAST).fit(1).weights(), stage.weights()) < 1e-6


def counting(model: PreTrainedModel) -> list[int]:
    """Each layer that is from now on computed in a way that it can be computed again."""
    found: list[int] = []
    for module in model.modules():
        if getattr(module, "gradient_checkpointing", None) is True:
            inner = module._gradient_checkpointing_func

            def counted(*args, inner=inner, **kwargs):
                found.append(1)
                return inner(*args, **kwargs)

            module._gradient_checkpointing_func = counted
    return found


@pytest.mark.parametrize("engine", [TransformersEngine, NativeEngine])
def test_it_is_off_while_a_model_samples_even_in_a_module_that_trains(engine):
    module = JointModule(WANTED, qwen2(1), qwen2(2))
    used = counting(module.policy)
    request = Request((5, 6, 7), 3, 6, 1.0)
    said = engine(module.policy, Stops()).generate([request])
    assert used == []
    assert said == engine(qwen2(1), Stops()).generate([request])
    with recomputing(module.policy, True):
        target_logprobs(module.policy, pack(rows("conversations", module.policy)))
    assert used
    count = len(used)
    assert engine(module.policy, Stops()).generate([request]) == said
    assert len(used) == count
    assert not any(part.training for part in module.policy.modules())


def test_after_an_error_the_layers_are_as_before():
    model = qwen2(1)
    allow_recomputing(model)
    with pytest.raises(ValueError, match="in between"), recomputing(model, True):
        raise ValueError("in between")
    assert not any(part.training for part in model.modules())


def test_layers_that_would_drop_out_are_refused():
    sizes = {
        "vocab_size": 64,
        "hidden_size": 16,
        "ffn_dim": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    positions = {"word_embed_proj_dim": 16, "max_position_embeddings": 32, "pad_token_id": END}
    dropping = OPTForCausalLM(OPTConfig(**sizes, **positions, dropout=0.1)).eval()
    with pytest.raises(
        ConfigError, match=r"learn\.gradient_checkpointing: .* OPTForCausalLM .*dropout = 0\.1"
    ):
        JointModule(WANTED, dropping, None)
    JointModule(WANTED, OPTForCausalLM(OPTConfig(**sizes, **positions, dropout=0.0)).eval(), None)


def test_a_model_without_it_is_refused():
    model = qwen2(1)
    model.supports_gradient_checkpointing = False
    with pytest.raises(ConfigError, match="transformers has no gradient checkpointing for Qwen2ForCausalLM"):
        JointModule(LearnConfig(gradient_checkpointing=True), model, None)
