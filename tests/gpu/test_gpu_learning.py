"""Both models under one trainer on a GPU: what the CPU learns, and the same bits twice, in every number format."""

from __future__ import annotations

import pytest
import torch
from learn_cases import FAST, SLOW
from torch import distributed
from trainer_cases import TWICE, Stage, furthest, low_rank

from benchmarks.plan.models import SEEING, seeing_model
from benchmarks.plan.steps import update
from rlanything.config import LearnConfig
from rlanything.engines.placement import exact_convolutions
from rlanything.learn.fixed_order import fixed_order
from rlanything.learn.trainer import make_strategy

WEIGHTS = 1e-4
"""How far weights may be from the CPU's after two iterations, in float32."""
SAVING = SLOW.model_copy(update={"gradient_checkpointing": True})
CASES: dict[str, LearnConfig] = {
    "all weights": SLOW,
    "gradient checkpointing": SAVING,
    "LoRA": low_rank(SLOW),
    "LoRA and gradient checkpointing": low_rank(SAVING),
}


def on_gpu(stage: Stage, **more: object) -> Stage:
    for reference in stage.module._references.values():
        if reference is not None:
            reference.cuda()
    return stage.fit(2, accelerator="cuda", **more)


def cpu(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: value.cpu() for name, value in weights.items()}


@pytest.mark.parametrize("case", CASES)
def test_a_gpu_learns_what_the_cpu_learns(case):
    if case.startswith("LoRA"):
        pytest.importorskip("peft", reason="needs peft: pip install '.[lora]'")
    known, found = Stage(CASES[case]).fit(2), on_gpu(Stage(CASES[case]))
    before = Stage(CASES[case]).weights()
    assert furthest(cpu(found.weights()), before) > WEIGHTS / 10
    assert furthest(cpu(found.weights()), known.weights()) < WEIGHTS
    for one, other in zip(known.totals, found.totals, strict=True):
        assert one.keys() == other.keys()
        for name, values in one.items():
            assert other[name] == pytest.approx(values, abs=1e-3, rel=1e-3), name


def test_references_and_recomputed_log_probs_are_those_of_the_cpu():
    known = Stage(TWICE, anchored=True, skew=0.3).fit(2)
    found = on_gpu(Stage(TWICE, anchored=True, skew=0.3))
    assert furthest(cpu(found.weights()), known.weights()) < WEIGHTS
    for one, other in zip(known.prepared, found.prepared, strict=True):
        assert other == pytest.approx(one, abs=1e-3)


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed", "bf16-true"])
def test_two_runs_give_the_same_bits(precision):
    """Wide micro-batches, so that many threads add to the same embedding."""

    def run() -> tuple[dict[str, torch.Tensor], list[dict[str, list[float]]]]:
        stage = Stage(FAST, micro_tokens=4000)
        if precision == "bf16-true":
            for model in (stage.policy, stage.reward):
                model.to(torch.bfloat16)
        on_gpu(stage, precision=precision)
        return cpu(stage.weights()), stage.totals

    (one, said), (other, says) = run(), run()
    assert all(torch.equal(value, other[name]) for name, value in one.items())
    assert said == says
    assert all(torch.isfinite(value).all() for value in one.values())


def test_after_an_update_the_process_is_as_it_was():
    with fixed_order(torch.device("cuda")):
        assert torch.are_deterministic_algorithms_enabled()
    assert not torch.are_deterministic_algorithms_enabled()


def test_recomputed_log_probs_are_those_of_the_first_update_in_bfloat16():
    """The same kernels compute both, so the ratio of a token is 1 before anything is learned."""
    config = FAST.model_copy(update={"importance": "recomputed"})
    stage = on_gpu(Stage(config, skew=0.3), precision="bf16-mixed")
    for totals in stage.totals:
        for name in ("policy", "reward"):
            assert abs(totals[f"{name}/kl"][0]) < 1e-9
            assert totals[f"{name}/clipped"][0] == 0.0


@pytest.fixture
def alone():
    """A group of one process is made by whoever trains sharded, and left to the next test otherwise."""
    yield
    if distributed.is_initialized():
        distributed.destroy_process_group()


@pytest.mark.parametrize("offload", [False, True], ids=["on the GPU", "in the host's memory"])
def test_sharded_training_learns_the_same_and_goes_on_from_its_checkpoint(alone, tmp_path, offload):
    known = Stage(SLOW).fit(2)
    found = on_gpu(Stage(SLOW), strategy=make_strategy("fsdp", 1, offload=offload), publish=tmp_path)
    assert furthest(cpu(found.weights()), known.weights()) < WEIGHTS
    going_on = Stage(SLOW).fit(2, resume=tmp_path / "1.ckpt")
    assert furthest(going_on.weights(), known.weights()) < WEIGHTS


@pytest.mark.parametrize("kind", SEEING)
def test_all_weights_of_a_model_that_sees_are_learned_in_a_fixed_order(kind):
    """Its tower too. An operation without a kernel that adds in a fixed order would raise."""
    learned = {}
    exact_convolutions()
    for name in ("cpu", "cuda", "cuda again"):
        device = torch.device(name.partition(" ")[0])
        model, eyes, rows = seeing_model(kind)
        model.to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)  # a step is the gradient, of norm 1
        with fixed_order(device):
            update(model, optimizer, [rows, rows], "32-true", eyes)
        learned[name] = cpu(model.state_dict())
    assert furthest(learned["cuda"], learned["cuda again"]) == 0.0
    assert furthest(learned["cuda"], learned["cpu"]) < WEIGHTS
