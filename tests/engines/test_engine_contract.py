"""What every engine does alike: the contract of `core.protocols.Engine`.

Samples follow the softmax. They depend on nothing but their request's seed, whatever else is asked in the same call, in
which order, and how calls are divided. What cannot be served is refused before anything is sampled.
"""

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

from rlanything.core.protocols import Engine
from rlanything.core.types import Request

ROUNDING = 1e-4
"""In log-probs, of any engine."""


@pytest.fixture(scope="module", params=cases.ENGINES)
def name(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def model():
    return cases.qwen2()


@pytest.fixture(scope="module")
def engine(name, model):
    with cases.opened(name, model, max_batch=64) as engine:
        yield engine


def test_nothing_to_do(engine: Engine):
    assert engine.generate([]) == []
    engine.release(["nobody"])
    engine.sync(1)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_samples_follow_the_softmax(name, model, engine, temperature):
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
        assert completion.logprobs[0] == pytest.approx(
            float(at_one[completion.ids[0]]), abs=cases.TOLERANCE[name]
        )


def test_constrained_samples_follow_the_renormalised_softmax(name, engine):
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
def test_company_and_order_change_nothing(name, engine, requests, rng):
    together = engine.generate(requests)
    engine.sync(1)
    order = list(range(len(requests)))
    rng.shuffle(order)
    cut = rng.randint(0, len(order))
    shuffled = [engine.generate([requests[i] for i in part]) for part in (order[:cut], order[cut:])]
    engine.sync(1)
    alone = [engine.generate([replace(request, session="", group="")])[0] for request in requests]
    for index, completion in zip(order, shuffled[0] + shuffled[1], strict=True):
        assert completion.ids == together[index].ids == alone[index].ids
        assert completion.allowed == together[index].allowed == alone[index].allowed
        assert completion.logprobs == pytest.approx(together[index].logprobs, abs=cases.TOLERANCE[name])
        assert completion.logprobs == pytest.approx(alone[index].logprobs, abs=cases.TOLERANCE[name])


@pytest.mark.parametrize("released", ["a", "b", "c"])
def test_the_turns_of_a_conversation_are_those_that_are_asked_without_a_session(name, engine, released):
    """Also where one beside it is released in between, and goes on later, and after its own release."""
    rng = random.Random(9)
    texts = {session: cases.words(rng, 40, 60) for session in ("a", "b", "c")}
    for turn in range(3):
        asked = [
            Request(text, 10 * turn + at, 7, session=session)
            for at, (session, text) in enumerate(texts.items())
            if turn != 1 or session != released
        ]
        found = engine.generate(asked)
        if turn == 0:
            engine.release([released])
        if turn == 2:
            engine.release(list(texts))
            assert cases.ids(engine.generate(asked)) == cases.ids(found)
            engine.release(list(texts))
        alone = engine.generate([replace(request, session="") for request in asked])
        assert cases.ids(found) == cases.ids(alone)
        for one, other in zip(found, alone, strict=True):
            assert one.logprobs == pytest.approx(other.logprobs, abs=cases.TOLERANCE[name])
        for request, completion in zip(asked, found, strict=True):
            texts[request.session] = request.prompt_ids + completion.ids + cases.words(rng, 3, 9)


def test_a_batch_has_at_least_one_row(name, model):
    with (
        pytest.raises(ValueError, match="max_batch must be at least 1"),
        cases.opened(name, model, max_batch=0),
    ):
        pass


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Request((), 0, 4), "0 prompt tokens"),
        (Request((5,), 0, 0), "max_tokens of at least 1"),
        (Request((5,), 0, 4, -0.5), "temperature of at least 0"),
        (Request((5, cases.VOCABULARY), 0, 4), "outside the vocabulary of 360"),
        (Request((5, -1), 0, 4), "outside the vocabulary"),
        (Request((5,), 0, 4, choices=((5, 999),)), "outside the vocabulary"),
        (Request((5,), 0, 4, choices=((5,), (5, 6))), "prefix"),
    ],
)
def test_requests_that_cannot_be_served(engine, request_, words):
    with pytest.raises(ValueError, match=words):
        engine.generate([Request((5,), 0, 1), request_])


def test_positions_that_the_model_does_not_have(engine):
    assert len(engine.generate([Request((5,) * 500, 0, 12)])) == 1
    with pytest.raises(ValueError, match="513 positions; the model has 512"):
        engine.generate([Request((5,) * 500, 0, 13)])


def test_diverged_weights_are_named(name):
    model = cases.qwen2()
    model.model.norm.weight.data[0] = float("nan")
    with cases.opened(name, model) as engine, pytest.raises(ValueError, match="not finite"):
        engine.generate([Request((5, 6), 0, 2)])


def test_after_a_sync_the_new_weights_sample(name):
    """Three updates: an engine can take over the first and keep parts of it at the second."""
    model = cases.qwen2(7)
    start = tuple(range(20, 120))
    with cases.opened(name, model) as engine:
        for update in range(4):
            if update:
                engine.sync(1)  # always the same name, which must not bring back an old cache
            requests = [Request(start, seed, 8, session=f"{update}/{seed}", group="g") for seed in range(4)]
            completions = engine.generate(requests)
            assert cases.worst_error(model, requests, completions) < ROUNDING
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.mul_(1.05)
            assert cases.worst_error(model, requests, completions) > 10 * ROUNDING


def test_completions_name_the_version_of_the_weights(name, model):
    forced = Request((5, 6), 0, 4, choices=((7, 2),))  # nothing of it is sampled
    requests = [Request((5, 6, seed + 10), seed, 4, session=f"{seed}") for seed in range(3)] + [forced]
    with cases.opened(name, model) as engine:
        assert [c.version for c in engine.generate(requests)] == [0] * 4
        engine.sync(7)
        assert [c.version for c in engine.generate(requests)] == [7] * 4
        engine.sync(3)
        assert [c.version for c in engine.generate(requests)] == [3] * 4


def test_closing_one_engine_leaves_the_others(name, model):
    requests = [Request(cases.words(random.Random(seed), 5, 20), seed, 6) for seed in range(6)]
    with cases.opened(name, model) as first, cases.opened(name, cases.qwen2(3)) as second:
        expected = first.generate(requests)
        assert second.generate(requests) != expected
        second.close()
        second.close()
        assert first.generate(requests) == expected
        first.sync(1)
        assert cases.ids(first.generate(requests)) == cases.ids(expected)


def test_engines_leave_the_process_as_it_was(name, model):
    """Random numbers and threads of a run do not depend on the engine."""
    torch.manual_seed(5)
    states = torch.random.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    with cases.opened(name, model) as engine:
        engine.generate([Request((5, 6, 7), 0, 4)])
    assert torch.equal(torch.random.get_rng_state(), states[0])
    assert (np.random.get_state()[1].tolist(), random.getstate()) == states[1:]
    assert torch.get_num_threads() == 1
    torch.set_num_threads(2)
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
