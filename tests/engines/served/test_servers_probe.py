"""What the probe of vLLM notices, of weights and of draws, with samplers that are modules themselves."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import engine_cases as cases
import pytest
import torch
from transformers import PreTrainedModel

from rlanything.core.types import Completion, Request
from rlanything.engines import sampling
from rlanything.engines.vllm import probe
from rlanything.engines.vllm.probe import DrawsMismatch, Probe, WeightsMismatch

CONTEXT = 512
FORMATS = [(torch.float32, 1e-6), (torch.bfloat16, 1e-5)]
"""Number format, and a learning rate whose step changes log-probs by little."""


Draw = Callable[[torch.Tensor, Request, int], int]
"""The id of logits V at a position of a reply."""


def drawn(logits: torch.Tensor, request: Request, at: int, skipped: int = 0) -> int:
    """As every engine draws. skipped: how many uniform numbers are left out."""
    uniform = torch.from_numpy(sampling.uniforms([request.seed], at + skipped + 1)[:, -1])
    return int(sampling.draw(logits[None], uniform, torch.tensor([request.temperature]))[0])


def sampler(model: PreTrainedModel, draw: Draw = drawn) -> Callable[[Sequence[Request]], list[Completion]]:
    """Samples from the module itself."""

    def sample(request: Request) -> Completion:
        ids: tuple[int, ...] = ()
        for at in range(request.max_tokens):
            with torch.no_grad():
                logits = model(torch.tensor([request.prompt_ids + ids])).logits[0, -1]
            ids += (draw(logits, request, at),)
        reply = Completion(ids, (), (), False)
        return Completion(ids, tuple(probe.logprobs(model, request, reply).tolist()), (), False)

    return lambda requests: [sample(request) for request in requests]


def pair(dtype: torch.dtype, sharper: float = 1.0) -> tuple[PreTrainedModel, PreTrainedModel]:
    """A module that trains, and what samples. sharper: what its logits are multiplied with."""
    model = cases.qwen2().to(dtype)
    with torch.no_grad():
        model.model.norm.weight.mul_(sharper)
    return model, copy.deepcopy(model)


def step(model: PreTrainedModel, rate: float) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)
    ids = torch.arange(3, 63)[None]
    model(ids, labels=ids).loss.backward()
    optimizer.step()


def of(model: PreTrainedModel, dtype: torch.dtype, *, exact: bool = True) -> Probe:
    return Probe(model, CONTEXT, 4 * probe.TOLERANCE[dtype], exact=exact)


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


def unreadable(model: PreTrainedModel) -> None:
    """From now on the module must not be read: another thread trains it."""

    def read(*_: object, **__: object) -> None:
        raise AssertionError("the module is read")

    for name in ("forward", "train", "eval", "state_dict"):
        setattr(model, name, read)


def test_a_later_sampler_of_a_load_is_compared_with_what_the_module_was_then():
    model, other = pair(torch.float32)
    stale = copy.deepcopy(other)
    step(stale, 1e-2)
    found = of(model, torch.float32)
    found.check(sampler(other), 1)
    step(model, 1e-2)  # the trainer goes on while a lost sampler is replaced
    unreadable(model)
    assert found.check(sampler(other), 1) == 0
    with pytest.raises(WeightsMismatch, match="does not have the trainer's weights"):
        found.check(sampler(stale), 1)


def test_of_a_later_sampler_that_draws_another_token_all_up_to_it_is_compared():
    """Rounding may draw another one. What the module says after it is not known."""
    model, other = pair(torch.float32)
    found = Probe(model, CONTEXT, 1e9, exact=True)
    found.check(sampler(other), 1)
    unreadable(model)

    def elsewhere(logits, request, at):
        return (drawn(logits, request, at) + (at == 2)) % len(logits)

    assert found.check(sampler(other, elsewhere), 1) < 1e-5
    strict = of(pair(torch.float32)[0], torch.float32)
    strict.check(sampler(other), 1)
    with pytest.raises(DrawsMismatch, match=r"seed \d, token 2, temperature"):
        strict.check(sampler(other, elsewhere), 1)


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


OTHERS: dict[str, Draw] = {
    "another stream of a seed": lambda logits, request, at: drawn(logits, replace(request, seed=9), at),
    "the same stream from another place": partial(drawn, skipped=1),
    "no draw, but the likeliest": lambda logits, request, at: int(logits.argmax()),
    "always temperature 1": lambda logits, request, at: drawn(logits, replace(request, temperature=1.0), at),
}


@pytest.mark.parametrize(
    ("dtype", "sure"), [(torch.float32, False), (torch.bfloat16, False), (torch.float32, True)]
)
@pytest.mark.parametrize("kind", OTHERS)
def test_tokens_that_no_other_engine_draws_are_noticed_though_log_probs_are_the_module_s(dtype, sure, kind):
    """sure: of a model that gives one token most of the chance."""
    model, other = pair(dtype, 8.0 if sure else 2.0)  # as it is, temperatures draw nearly the same
    found = Probe(model, CONTEXT, probe.TOLERANCE[dtype], exact=True)
    with pytest.raises(
        DrawsMismatch,
        match=r"it drew id \d+ where they draw \d+ \(seed \d, token \d, temperature [14]\).*start it again",
    ):
        found.check(sampler(other, OTHERS[kind]), 1)
    assert found.check(sampler(other), 1) == 0


@pytest.mark.parametrize("heat", [1.0, 4.0])
@pytest.mark.parametrize(("tolerance", "noticed"), [(1e-3, 0.99), (0.25, 0.8)])
def test_a_draw_is_accepted_where_log_probs_within_the_tolerance_explain_it(tolerance, noticed, heat):
    torch.manual_seed(0)
    count = 20_000
    logprobs = (3 * torch.randn(count, 50)).log_softmax(-1)
    off = tolerance / 2 * torch.where(torch.rand(logprobs.shape) < 0.5, -1.0, 1.0)
    rounded = (logprobs + off).log_softmax(-1)
    assert tolerance / 2 < float((rounded - logprobs).abs().max()) < tolerance
    uniform = torch.from_numpy(sampling.uniforms([5], count)[0])
    temperature = torch.full((count,), heat)
    exact, near, strange = (
        sampling.draw(values, numbers, temperature)[0]
        for values, numbers in ((logprobs, uniform), (rounded, uniform), (logprobs, uniform.roll(1)))
    )
    needed = [probe.shifts(logprobs, ids, uniform, heat) for ids in (exact, near, strange)]
    assert float(needed[0].max()) < 1e-5
    assert 1e-5 < float(needed[1].max()) <= tolerance
    assert float((needed[2][strange != exact] > tolerance).float().mean()) > noticed
