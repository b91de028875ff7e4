"""LoRA in training: what is trained, stored and resumed, and what engines sample from it."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
import torch
from learn_cases import FAST, SLOW, Stops, qwen2
from test_learn_processes import check, two_processes
from torch import Tensor
from trainer_cases import LORA, Stage, furthest, low_rank

from rlanything.core.types import Request
from rlanything.engines.lora.injection import trained
from rlanything.engines.native import NativeEngine
from rlanything.engines.transformers import TransformersEngine

pytest.importorskip("peft", reason="needs peft: pip install '.[lora]'")

WANTED = low_rank(FAST)


def split(weights: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """LoRA's weights, and the frozen ones."""
    own = {name for name in weights if ".lora_" in name}
    return {n: weights[n] for n in own}, {n: x for n, x in weights.items() if n not in own}


def test_only_the_weights_of_lora_change_and_the_loss_is_that_of_a_model_that_learns():
    stage = Stage(WANTED, anchored=True)
    before = stage.weights()
    stage.fit(2)
    (own, frozen), (first, base) = split(stage.weights()), split(before)
    assert furthest(frozen, base) == 0.0
    assert all(not torch.equal(own[name], first[name]) for name in own)
    assert len(own) == 2 * 2 * 2 * 7  # models, factors, layers, matrices


def test_a_checkpoint_holds_lora_alone_and_a_resumed_run_has_the_same_bits(tmp_path):
    whole = Stage(WANTED, anchored=True).fit(3, tmp_path)
    stored = torch.load(tmp_path / "2.ckpt", weights_only=True)
    assert set(stored["state_dict"]) == set(split(whole.weights())[0])
    for state, model in zip(stored["optimizer_states"], (whole.policy, whole.reward), strict=True):
        shapes = [tuple(state["state"][n]["exp_avg"].shape) for n in sorted(state["state"])]
        assert shapes == [tuple(value.shape) for value in trained(model).values()]
    again = Stage(WANTED, anchored=True).fit(3, resume=tmp_path / "2.ckpt")
    assert furthest(again.weights(), whole.weights()) == 0.0
    assert again.totals == whole.totals[2:]


def test_a_model_without_lora_beside_one_with_it_is_stored_whole(tmp_path):
    stage = Stage(low_rank(FAST, "policy")).fit(2, tmp_path)
    stored = torch.load(tmp_path / "1.ckpt", weights_only=True)["state_dict"]
    kept = {name for name in stored if name.startswith("reward.")}
    assert kept == {f"reward.{name}" for name in stage.reward.state_dict()}
    assert all(".lora_" in name for name in stored.keys() - kept)
    again = Stage(low_rank(FAST, "policy")).fit(2, resume=tmp_path / "1.ckpt")
    assert furthest(again.weights(), stage.weights()) == 0.0


@pytest.mark.parametrize("engine", [NativeEngine, TransformersEngine])
def test_what_engines_sample_has_the_log_probs_that_training_computes(engine):
    """Also after a second update, whose weights `sync` brings."""
    stage = Stage(WANTED)
    sampler = engine(stage.policy, Stops())
    requests = [Request(tuple(range(2, 12 + n)), n, 8) for n in range(4)]
    for done in (1, 2):
        stage.iteration, stage.totals = done - 1, []
        stage.fit(1)
        sampler.sync(done)
        for request, completion in zip(requests, sampler.generate(requests), strict=True):
            ids = torch.tensor([request.prompt_ids + completion.ids])
            logits = stage.policy(ids).logits[0, len(request.prompt_ids) - 1 : -1]
            known = logits.log_softmax(-1).gather(1, ids[0, len(request.prompt_ids) :, None])[:, 0]
            assert torch.allclose(torch.tensor(completion.logprobs), known, atol=1e-5)
            bare = qwen2(1)(ids).logits[0, len(request.prompt_ids) - 1 : -1]
            assert float((bare - logits).abs().max()) > 0.01  # LoRA has learned something


def test_recomputing_layers_changes_no_gradient():
    again = WANTED.model_copy(update={"gradient_checkpointing": True})
    one, other = Stage(WANTED).fit(2), Stage(again).fit(2)
    assert furthest(one.weights(), other.weights()) == 0.0


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_a_frozen_bfloat16_model_is_trained_by_float32_weights(precision):
    """Updates that bfloat16 would round away are kept: the learning rate is far below its precision."""
    config = low_rank(SLOW).model_copy(update={"importance": "recomputed"})
    stage = Stage(config, half=True)
    before = copy.deepcopy(stage.weights())
    stage.fit(1, precision=precision)
    own, first = split(stage.weights())[0], split(before)[0]
    assert {value.dtype for value in own.values()} == {torch.float32}
    assert all(0 < float((own[n] - first[n]).abs().max()) < 1e-3 for n in own)
    assert all(0 <= value < 1 for value in stage.totals[0]["policy/clipped"])


@pytest.mark.long
@pytest.mark.integration
@pytest.mark.parametrize(("strategy", "matrices"), [("ddp", 0), ("fsdp", 2 * 2 * 2 * 7)])
def test_two_processes_train_lora_as_one_does_and_one_goes_on_from_their_checkpoint(
    tmp_path: Path, strategy: str, matrices: int
):
    """With `fsdp` each process has half of every matrix of LoRA, and all of the frozen bfloat16 weights."""
    two_processes(tmp_path, strategy, LORA)
    wanted = Stage(low_rank(SLOW), micro_tokens=60, half=True).fit(2)
    check(tmp_path, wanted)
    assert json.loads((tmp_path / "divided-1.json").read_text()) == matrices
    stored = torch.load(tmp_path / "1.ckpt", weights_only=True)
    assert set(stored["state_dict"]) == set(split(wanted.weights())[0])
    going_on = Stage(low_rank(SLOW), micro_tokens=60, half=True).fit(2, resume=tmp_path / "1.ckpt")
    assert furthest(going_on.weights(), wanted.weights()) < 1e-5
