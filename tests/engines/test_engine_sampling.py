"""Samples follow the softmax, and depend on nothing but their request's seed."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import engine_cases as cases
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlanything.core.types import Request
from rlanything.engines.native import NativeEngine
from rlanything.engines.sampling import draw, uniforms

SEEDS = st.integers(0, 2**63 - 1)


@pytest.fixture(scope="module")
def model():
    return cases.qwen2()


@pytest.fixture(scope="module")
def engine(model):
    return NativeEngine(model, cases.tokenizer(), max_batch=256)


@given(st.lists(SEEDS, min_size=1, max_size=8), st.integers(1, 40))
def test_a_uniform_depends_on_its_seed_and_index_only(seeds, count):
    together = uniforms(seeds, count)
    assert together.shape == (len(seeds), count)
    assert ((together >= 0) & (together < 1)).all()
    for row, seed in zip(together, seeds, strict=True):
        assert (uniforms([seed], count + 3)[0, :count] == row).all()


def test_uniforms_are_uniform_and_unrelated():
    numbers = uniforms(range(2000), 20)
    counts = np.histogram(numbers, bins=50, range=(0, 1))[0]
    expected = numbers.size / 50
    assert ((counts - expected) ** 2 / expected).sum() < 90  # chi-square, 49 degrees of freedom: p < 4e-4
    assert abs(np.corrcoef(numbers[:-1].ravel(), numbers[1:].ravel())[0, 1]) < 0.03
    assert abs(np.corrcoef(numbers[:, :-1].ravel(), numbers[:, 1:].ravel())[0, 1]) < 0.03


def test_uniforms_are_pinned():
    """A change of these numbers would change every recorded run."""
    pinned = [[0.652448486374, 0.701212109522], [0.368189515652, 0.943564230865]]
    assert uniforms([0, 1], 2).round(12).tolist() == pinned


def test_a_seed_must_be_a_natural_number():
    with pytest.raises(OverflowError):
        uniforms([-1], 1)


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=12), st.sampled_from([0.0, 0.3, 1.0, 4.0]))
def test_extreme_uniforms_stay_inside(logits, temperature):
    row = torch.tensor([[float("-inf"), *logits, float("-inf")]] * 3)
    ends = torch.tensor([0.0, 0.5, 1 - 2.0**-50], dtype=torch.float64)
    chosen, logprobs = draw(row, ends, torch.full((3,), temperature))
    assert ((chosen > 0) & (chosen <= len(logits))).all()
    torch.testing.assert_close(logprobs, row.log_softmax(-1).gather(1, chosen[:, None])[:, 0])


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_samples_follow_the_softmax(model, engine, temperature):
    prompt, count = (40, 50, 60, 70), 3000
    completions = engine.generate([Request(prompt, seed, 1, temperature) for seed in range(count)])
    with torch.no_grad():
        logits = model(torch.tensor([prompt])).logits[0, -1]
    expected = (logits / temperature).softmax(-1) * count
    seen = torch.tensor([c.ids[0] for c in completions]).bincount(minlength=cases.VOCABULARY)
    often = expected >= 8
    statistic = ((seen - expected)[often] ** 2 / expected[often]).sum()
    assert often.sum() > 20
    freedom = float(often.sum())
    assert statistic < freedom + 4 * (2 * freedom) ** 0.5
    at_one = logits.log_softmax(-1)
    for completion in completions[:50]:
        assert completion.logprobs[0] == pytest.approx(float(at_one[completion.ids[0]]), abs=1e-5)


def test_constrained_samples_follow_the_renormalised_softmax(engine):
    choices = ((10, 2), (11, 2), (12, 13, 2), (12, 14, 2))
    completions = engine.generate([Request((40, 50), seed, 4, 1.0, choices) for seed in range(3000)])
    counts = Counter(completion.ids for completion in completions)
    chance = {c.ids: float(np.exp(sum(c.logprobs))) for c in completions}
    assert counts.keys() == set(choices)
    assert sum(chance.values()) == pytest.approx(1.0, abs=1e-5)
    assert (
        sum((counts[c] - 3000 * p) ** 2 / (3000 * p) for c, p in chance.items()) < 17
    )  # 3 degrees: p < 1e-3
    for completion in completions:
        assert completion.allowed[0] == (10, 11, 12)
        assert completion.allowed[-1] == (2,)
        assert completion.logprobs[-1] == 0.0


def test_temperature_zero_is_greedy(model, engine):
    requests = [Request(cases.words(random.Random(seed), 3, 9), seed, 5, 0.0) for seed in range(5)]
    for request, completion in zip(requests, engine.generate(requests), strict=True):
        text = list(request.prompt_ids)
        for token in completion.ids:
            with torch.no_grad():
                assert token == int(model(torch.tensor([text])).logits[0, -1].argmax())
            text.append(token)


def test_max_tokens_cuts_and_the_end_of_turn_stops(engine):
    completions = engine.generate([Request((9, 8, seed + 3), seed, 6) for seed in range(300)])
    assert {c.finished for c in completions} == {True, False}
    for completion in completions:
        assert completion.finished == (completion.ids[-1] == cases.END)
        assert cases.END not in completion.ids[:-1]
        assert len(completion.ids) == 6 or completion.finished
        assert completion.allowed == ()
    cut = engine.generate([Request((9, 8), 0, 2, choices=((5, 6, 7, 2),))])[0]
    assert (cut.ids, cut.finished, cut.logprobs) == ((5, 6), False, (0.0, 0.0))


@st.composite
def mixtures(draw_value):
    """Requests of every kind, with a little of everything shared between them."""
    rng = draw_value(st.randoms(use_true_random=False))
    trunk, requests = cases.words(rng, 10, 30), []
    for index in range(draw_value(st.integers(2, 14))):
        kind = draw_value(st.sampled_from(["plain", "same", "group", "session"]))
        prompt = cases.words(rng, 1, 20) if kind == "plain" else trunk
        if kind == "group":
            prompt = trunk[: rng.randint(1, len(trunk))] + cases.words(rng, 0, 4)
        requests.append(
            Request(
                prompt,
                rng.randrange(10**9),
                rng.randint(1, 8),
                rng.choice((0.0, 0.7, 1.0)),
                cases.actions(rng, rng.randint(1, 5)) if rng.random() < 0.5 else (),
                session=f"{index}" if kind == "session" else "",
                group=rng.choice("ab") if kind == "group" else "",
            )
        )
    return requests


@settings(max_examples=15, deadline=None)
@given(mixtures(), st.randoms(use_true_random=False))
def test_company_and_order_change_nothing(engine, requests, rng):
    together = engine.generate(requests)
    engine.sync()
    order = list(range(len(requests)))
    rng.shuffle(order)
    cut = rng.randint(0, len(order))
    shuffled = [engine.generate([requests[i] for i in part]) for part in (order[:cut], order[cut:])]
    engine.sync()
    alone = [engine.generate([replace(request, session="", group="")])[0] for request in requests]
    for index, completion in zip(order, shuffled[0] + shuffled[1], strict=True):
        assert completion.ids == together[index].ids == alone[index].ids
        assert completion.allowed == together[index].allowed == alone[index].allowed
        assert completion.logprobs == pytest.approx(together[index].logprobs, abs=1e-5)
        assert completion.logprobs == pytest.approx(alone[index].logprobs, abs=1e-5)
