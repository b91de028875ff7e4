"""What LoRA costs in a plan: its own weights alone have gradients and moments. Equal checkpoints are counted once."""

from __future__ import annotations

from pathlib import Path

import pytest
from costs_cases import WHOLE, one_gpu, planned

from benchmarks.plan.models import ROWS, random_model, sizes_of
from benchmarks.plan.steps import measure_step, predicted_step
from benchmarks.training import random_rows
from rlanything.cli import main
from rlanything.config import LoraConfig
from rlanything.planning.costs.estimate import Estimate
from rlanything.planning.costs.low_rank import lora_weights

ROOT = Path(__file__).parents[3]
OFTEN = 1.3
"""How many times the measured peak a predicted one may be: not all that is counted is kept of frozen matrices."""


def lasting(found: Estimate) -> dict[tuple[str, str], float]:
    return {(part.name, part.model): part.bytes for part in found.memory.lasting}


def test_the_weights_are_counted_as_peft_makes_them(tmp_path):
    pytest.importorskip("peft", reason="needs peft: pip install '.[lora]'")
    from rlanything.engines.lora.injection import inject, trained

    for targets in (("q_proj", "v_proj"), ("o_proj", "gate_proj", "up_proj", "down_proj", "k_proj")):
        model = random_model("llama")
        size, lora = sizes_of(model, tmp_path), LoraConfig(rank=5, targets=targets)
        inject(model, lora, 0, "learn.policy.lora")
        assert sum(value.numel() for value in trained(model).values()) == lora_weights(size, lora)


def test_roles_with_one_checkpoint_have_one_copy_of_its_weights_and_lora_its_own_of_the_rest():
    found, plain = one_gpu(), one_gpu(*WHOLE)
    parts = lasting(found)
    weights = {model for name, model in parts if name == "weights, frozen"}
    assert weights == {"policy"}
    own = 4 * 18_464_768
    for model in ("policy", "reward"):
        assert parts["LoRA's weights", model] == parts["gradients of LoRA", model] == own
        assert parts["moments of AdamW of LoRA", model] == 2 * own
    assert parts["weights, frozen", "policy"] == 2 * 1_543_714_304
    assert len(parts) == 7
    assert found.memory.peak < 0.45 * plain.memory.peak
    assert found.hours.hours < plain.hours.hours


def test_a_model_in_another_format_has_frozen_weights_of_its_own():
    parts = lasting(one_gpu("learn.reward.precision=32-true"))
    count = 1_543_714_304
    assert parts["weights, frozen", "policy"] == 2 * count
    assert parts["weights, frozen", "reward"] == 4 * count
    same = lasting(one_gpu("learn.reward.precision=bf16-true"))  # frozen weights are bfloat16 with both
    assert same == lasting(one_gpu())


def test_a_model_that_trains_in_bfloat16_takes_half_and_computes_as_fast():
    mixed, half = one_gpu(*WHOLE), one_gpu(*WHOLE, "learn.reward.precision=bf16-true")
    before, after = lasting(mixed), lasting(half)
    for name, model in before:
        of_weights = model == "reward" and name in ("weights", "gradients", "moments of AdamW")
        assert after[name, model] == before[name, model] / (2 if of_weights else 1)
    assert half.memory.peak < mixed.memory.peak
    full = one_gpu(*WHOLE, "learn.reward.precision=32-true")
    assert full.hours.phases["learn, reward"] > 2 * mixed.hours.phases["learn, reward"]
    assert full.hours.phases["learn, policy"] == mixed.hours.phases["learn, policy"]


def test_another_checkpoint_and_a_model_that_trains_whole_have_weights_of_their_own():
    parts = lasting(one_gpu("model.reward.path=Qwen/Qwen2.5-0.5B-Instruct"))
    assert {model for name, model in parts if name == "weights, frozen"} == {"policy", "reward"}
    parts = lasting(one_gpu(WHOLE[0]))
    assert {model for name, model in parts if name == "weights, frozen"} == {"reward"}
    assert parts["gradients", "policy"] == 4 * 1_543_714_304


def test_vllm_in_the_trainers_process_has_the_frozen_weights_once_where_loras_are_apart():
    def copies(*overrides: str) -> dict[str, float]:
        found = lasting(one_gpu(*overrides)).items()
        return {
            model: size for (name, model), size in found if name in ("vLLM's copy", "its servers' copies")
        }

    whole, own = 2 * 1_543_714_304, 2 * 18_464_768
    three = {"policy": whole, "reward": whole, "adapter": whole}
    assert copies("engine=vllm", "engine.lora=merged") == three
    for apart in ("engine.lora=apart", "engine.lora=auto"):
        assert copies("engine=vllm", apart) == {"policy": whole + own, "reward": own}
    assert copies("engine=vllm_servers", "engine.lora=apart") == three


def test_a_reference_is_the_frozen_model_itself():
    found = [lasting(one_gpu(f"learn.kl_reference={name}")) for name in ("base", "start_of_step")]
    assert found[0] == found[1]


def test_divided_lora_has_parts_of_its_own_weights_and_the_frozen_ones_whole():
    parts, own = lasting(one_gpu("train.strategy=fsdp", count=8)), 4 * 18_464_768
    assert parts["weights, frozen", "policy"] == 2 * 1_543_714_304
    for model in ("policy", "reward"):
        assert parts["LoRA's weights", model] == parts["gradients of LoRA", model] == own / 8
        assert parts["LoRA's weights that sample", model] == own
    assert len(parts) == 9


def test_what_would_fit_never_divides_a_model_with_lora():
    found = planned("learn.policy.lora={rank: 16}", "learn.reward.lora={rank: 16}")
    assert not found.fits
    assert found.nearest is None or not any("fsdp" in change for change in found.nearest[0].changes)


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed", "bf16-true"])
def test_the_memory_of_a_step_is_at_least_what_torch_allocates(tmp_path, precision):
    pytest.importorskip("peft", reason="needs peft: pip install '.[lora]'")
    rows, lora = random_rows(ROWS)[0], LoraConfig(rank=8)
    size = sizes_of(random_model("qwen2"), tmp_path)
    peak = measure_step(random_model("qwen2"), [rows, rows], precision, lora=lora)
    assert peak <= predicted_step(size, rows, precision, lora=lora) <= OFTEN * peak


def test_the_page_says_how_many_weights_train(capsys):
    words = ["plan", "scale=single-gpu", "--arm", "full", "--device", "H100"]
    assert main(["--root", str(ROOT), *words]) == 0
    said = capsys.readouterr().out
    assert "1,543,714,304 parameters, 18,464,768 of LoRA train, Qwen/Qwen2.5-1.5B-Instruct" in said


def test_a_reward_model_that_another_arm_trained_with_lora_has_weights_of_lora_alone():
    learned = "+arm@arms.policy_learned=policy_learned"
    parts, own = lasting(one_gpu(learned, arm="policy_learned")), 4 * 18_464_768
    assert {model for name, model in parts if name == "weights, frozen"} == {"policy"}
    assert parts["LoRA's weights", "reward"] == own
    whole = lasting(one_gpu(learned, "learn.reward.lora=null", arm="policy_learned"))
    assert {model for name, model in whole if name == "weights, frozen"} == {"reward", "policy"}
