"""What FSDP has whole while a model learns: PyTorch's own groups of weights beside what a plan counts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from costs_cases import ROOT, configuration, one_gpu, planned
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule
from torch.testing._internal.distributed.fake_pg import FakeStore
from transformers import PreTrainedModel

from benchmarks.plan.models import SEEING, random_model, seeing_model, sizes_of
from rlanything.learn.losses import pack
from rlanything.learn.packing import idle_row
from rlanything.learn.sharding import logprobs_of, shard
from rlanything.planning.costs.estimate import model_sizes
from rlanything.planning.costs.memory import memory

PROCESSES = 4
LAYERS = 5


@pytest.fixture
def mesh() -> Iterator[torch.distributed.DeviceMesh]:
    """Four processes of which this one alone is there: collectives do nothing, and memory is what it would be."""
    distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=PROCESSES)
    yield init_device_mesh("cpu", (PROCESSES,))
    distributed.destroy_process_group()


def whole(model: PreTrainedModel) -> tuple[int, int]:
    """How many weights, and how many numbers of gradients, lie whole in this process."""
    groups = [
        group
        for module in model.modules()
        if isinstance(module, FSDPModule)
        for group in module._get_fsdp_state()._fsdp_param_groups
    ]
    weights = [getattr(each, "_unsharded_param", None) for group in groups for each in group.fsdp_params]
    there = [weight for weight in weights if weight is not None]
    gathered = sum(weight.numel() for weight in there if weight.untyped_storage().size())
    return gathered, sum(weight.grad.numel() for weight in there if weight.grad is not None)


def root_of(model: PreTrainedModel) -> int:
    """How many weights are in the group that stays whole."""
    assert isinstance(model, FSDPModule)
    (group,) = model._get_fsdp_state()._fsdp_param_groups
    return sum(each._orig_size.numel() for each in group.fsdp_params)


@pytest.mark.parametrize("tied", [False, True])
def test_embedding_and_output_layer_stay_whole_from_the_forward_to_the_backward_pass(mesh, tmp_path, tied):
    """What PyTorch does. On a CPU it gathers no layer ahead, so one layer is whole where a GPU may have two."""
    model = random_model("qwen2", num_hidden_layers=LAYERS, tie_word_embeddings=tied)
    size = sizes_of(model, tmp_path)
    shard(model, mesh, offload=False)
    found: list[tuple[int, int]] = []
    for layer in model.base_model.layers:
        layer.register_full_backward_hook(lambda *_: found.append(whole(model)))
    loss = logprobs_of(model)(pack([idle_row()], torch.device("cpu"))).sum()
    assert whole(model) == (size.outside, 0) == (root_of(model), 0)
    loss.backward()
    layer = (size.parameters - size.outside) // LAYERS
    # The embedding's gradient comes at the very end. Where it is tied, autograd holds the head's part till then.
    head = 0 if tied else size.vocab * size.hidden
    assert found == [(size.outside + layer, head + size.hidden + layer)] * LAYERS
    assert whole(model) == (0, 0)


@pytest.mark.parametrize("name", SEEING)
def test_of_a_tower_what_is_in_none_of_its_layers_stays_whole(mesh, tmp_path, name):
    model, _, _ = seeing_model(name)
    size = sizes_of(model, tmp_path)
    shard(model, mesh, offload=False)
    assert size.tower is not None
    assert size.outside == pytest.approx(root_of(model), rel=0.01)


def gathered(*overrides: str) -> float:
    """The bytes that dividing adds to what the policy needs to learn."""
    most = {}
    for strategy in ("auto", "fsdp"):
        more = [word for word in overrides if strategy == "fsdp" or "lora" in word]
        config = configuration(f"train.strategy={strategy}", *more)
        found = memory(config, "full", model_sizes(config, ROOT), planned().work, 8)
        (most[strategy],) = (p for p in found.passing if p.model == "policy" and "activations" in p.name)
    return most["fsdp"].bytes - most["auto"].bytes


def test_a_plan_counts_the_root_for_a_whole_pass_and_two_layers():
    """Qwen2.5-7B: 28 layers, and 152,064 tokens of 3,584 numbers, in the embedding and in the output layer."""
    root = 2 * 152_064 * 3_584 + 3_584
    layer = (7_615_616_512 - root) / 28
    assert gathered() == pytest.approx(4 * (2 * root + 4 * layer))
    assert gathered("train.exchange=last") == pytest.approx(4 * (root + 7_615_616_512 + 4 * layer))


def test_with_lora_two_layers_of_its_own_weights_are_whole_and_nothing_of_the_root():
    def learning(strategy: str) -> float:
        parts = one_gpu(f"train.strategy={strategy}", count=8).memory.passing
        (part,) = (p for p in parts if p.model == "policy" and "activations" in p.name)
        return part.bytes

    assert learning("fsdp") - learning("ddp") == pytest.approx(4 * 4 * 18_464_768 / 28)
