"""Two processes that share an iteration learn what one process learns. Each has all weights, or half of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from learn_cases import SLOW
from rank_cases import two_ranks
from trainer_cases import ANCHORED, LATE, MODELS, OFFLOAD, OWN, Stage, furthest, main, numbers

from rlanything.learn.sharding import Sharding
from rlanything.learn.trainer import make_strategy


def two_processes(folder: Path, strategy: str, *more: str) -> None:
    """Train with two processes, which leave statistics, weights and a checkpoint of each iteration in `folder`."""
    two_ranks(folder, main, folder, strategy, *more)


def alone(**how: bool) -> Stage:
    return Stage(SLOW, micro_tokens=60, **how)


def check(folder: Path, wanted: Stage) -> None:
    """Both processes have the statistics of the last iterations of `wanted`, and its weights."""
    for rank in (0, 1):
        totals = json.loads((folder / f"totals-{rank}.json").read_text())
        for found, known in zip(totals, wanted.totals[-len(totals) :], strict=True):
            assert found.keys() == known.keys()
            for name, values in known.items():
                assert found[name] == pytest.approx(values, abs=1e-5), name
        assert furthest(torch.load(folder / f"weights-{rank}.pt"), wanted.weights()) < 1e-5


def held(folder: Path) -> list[list[int]]:
    """How many numbers each of the two processes held in tensors for its checkpoints."""
    return [json.loads((folder / f"held-{rank}.json").read_text()) for rank in (0, 1)]


@pytest.mark.long
@pytest.mark.integration
@pytest.mark.parametrize("strategy", ["ddp", "fsdp", LATE])
def test_two_processes_give_the_losses_and_weights_of_one_which_can_go_on_from_their_checkpoint(
    tmp_path, strategy
):
    two_processes(tmp_path, strategy)
    (tmp_path / "alone").mkdir()
    wanted = alone().fit(2, tmp_path / "alone")
    check(tmp_path, wanted)
    for rank in (0, 1):
        backward, exchanged = (
            json.loads((tmp_path / f"{name}-{rank}.json").read_text()) for name in ("backward", "exchanged")
        )
        steps = 2 * SLOW.updates * len(MODELS)  # of both models in two iterations
        assert backward > steps
        assert exchanged == (backward if strategy == "fsdp" else steps)
    assert held(tmp_path) == [wanted.held, wanted.held if strategy == "ddp" else [0, 0]]
    assert wanted.held == [numbers(torch.load(tmp_path / f"{k}.ckpt", weights_only=True)) for k in (1, 2)]
    going_on = alone().fit(2, resume=tmp_path / "1.ckpt")
    assert len(going_on.totals) == 1
    assert furthest(going_on.weights(), wanted.weights()) < 1e-5


@pytest.mark.long
@pytest.mark.integration
def test_sharded_processes_go_on_from_the_checkpoint_of_one_whose_reward_model_has_learned_nothing_yet(
    tmp_path,
):
    """Lightning cannot load the state of an optimizer that has not made a step into a sharded one by itself.

    Their parts are in the host's memory, as FSDP calls it; here that is the memory of the only device."""
    wanted = alone(silent=True).fit(2, tmp_path)
    two_processes(tmp_path, OFFLOAD, str(tmp_path / "1.ckpt"))
    check(tmp_path, wanted)
    assert held(tmp_path) == [wanted.held[1:], [0]], "the first process alone holds a checkpoint"


@pytest.mark.long
@pytest.mark.integration
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_processes_divide_the_passes_that_compute_log_probs_again(tmp_path, strategy):
    two_processes(tmp_path, strategy, ANCHORED)
    wanted = Stage(OWN, micro_tokens=60, anchored=True, skew=0.3).fit(2)
    check(tmp_path, wanted)
    for rank in (0, 1):
        passes = json.loads((tmp_path / f"passes-{rank}.json").read_text())
        assert wanted.passes <= 2 * passes <= wanted.passes + 2, "at most one idle pass an iteration"
        prepared = json.loads((tmp_path / f"prepared-{rank}.json").read_text())
        for found, known in zip(prepared, wanted.prepared, strict=True):
            assert found == pytest.approx(known, abs=1e-5)


def test_parts_in_the_hosts_memory_are_exchanged_beside_those_of_gpus(monkeypatch):
    """NCCL cannot gather what lies in the host's memory, and gloo not what a GPU computes with."""
    monkeypatch.setattr(Sharding, "root_device", torch.device("cuda", 0))
    alone, offloaded = (make_strategy("fsdp", 2, offload=offload) for offload in (False, True))
    assert alone._get_process_group_backend() == "nccl"
    assert offloaded._get_process_group_backend() == "cpu:gloo,cuda:nccl"
