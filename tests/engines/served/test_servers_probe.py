"""What the probe of vLLM's weights notices, with samplers that are modules themselves."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import engine_cases as cases
import pytest
import torch
from transformers import PreTrainedModel

from rlanything.core.types import Completion, Request
from rlanything.engines.vllm import probe
from rlanything.engines.vllm.probe import Probe, WeightsMismatch

CONTEXT = 512
FORMATS = [(torch.float32, 1e-6), (torch.bfloat16, 1e-5)]
"""Number format, and a learning rate whose step changes log-probs by little."""


def sampler(model: PreTrainedModel) -> Callable[[Sequence[Request]], list[Completion]]:
    """Samples the likeliest tokens from the module itself."""

    def sample(request: Request) -> Completion:
        ids: tuple[int, ...] = ()
        for _ in range(request.max_tokens):
            with torch.no_grad():
                logits = model(torch.tensor([request.prompt_ids + ids])).logits[0, -1]
            ids += (int(logits.argmax()),)
        drawn = Completion(ids, (), (), False)
        return Completion(ids, tuple(probe.logprobs(model, request, drawn).tolist()), (), False)

    return lambda requests: [sample(request) for request in requests]


def pair(dtype: torch.dtype) -> tuple[PreTrainedModel, PreTrainedModel]:
    """A module that trains, and what samples."""
    model = cases.qwen2().to(dtype)
    return model, copy.deepcopy(model)


def step(model: PreTrainedModel, rate: float) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)
    ids = torch.arange(3, 63)[None]
    model(ids, labels=ids).loss.backward()
    optimizer.step()


def of(model: PreTrainedModel, dtype: torch.dtype, *, exact: bool = True) -> Probe:
    return Probe(model, CONTEXT, 10 * probe.TOLERANCE[dtype], exact=exact)


@pytest.mark.parametrize(("dtype", "rate"), FORMATS)
def test_an_update_that_is_not_taken_over_is_noticed_also_where_it_is_below_the_tolerance(dtype, rate):
    model, other = pair(dtype)
    found = of(model, dtype)
    found.check(sampler(other), 1)
    step(model, rate)
    with pytest.raises(WeightsMismatch, match=r"has not taken over an update.*are the same bits as before"):
        found.check(sampler(other), 2)


@pytest.mark.parametrize(("dtype", "rate"), FORMATS)
def test_updates_that_are_taken_over_are_accepted_and_so_is_none(dtype, rate):
    model, other = pair(dtype)
    found = of(model, dtype)
    for load in range(1, 4):
        assert found.check(sampler(other), load) <= 1e-5
        if load > 1:
            step(model, rate)
            other.load_state_dict(model.state_dict())


def test_one_of_several_servers_that_has_not_taken_over_an_update_is_noticed():
    model, stale = pair(torch.float32)
    found = of(model, torch.float32)
    found.check(sampler(stale), 1)
    step(model, 1e-6)
    found.check(sampler(copy.deepcopy(model)), 2)
    with pytest.raises(WeightsMismatch, match="has not taken over"):
        found.check(sampler(stale), 2)


def test_a_sampler_in_another_format_may_round_an_update_away():
    model, other = pair(torch.float32)
    found = of(model, torch.float32, exact=False)
    found.check(sampler(other), 1)
    step(model, 1e-6)
    found.check(sampler(other), 2)


def test_a_part_that_is_not_taken_over_is_noticed_above_the_tolerance_alone():
    model, other = pair(torch.bfloat16)
    step(model, 1e-5)
    tolerance = probe.TOLERANCE[torch.bfloat16]
    assert Probe(model, CONTEXT, tolerance, exact=True).check(sampler(other), 1) > 0
    step(model, 1e-3)
    with pytest.raises(WeightsMismatch, match=r"log-probs differ by .* rounding explains 0\.25"):
        Probe(model, CONTEXT, tolerance, exact=True).check(sampler(other), 1)
