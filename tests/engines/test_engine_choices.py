"""Constrained decoding never leaves the set, and what is forced costs nothing."""

from __future__ import annotations

import random

import engine_cases as cases
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlanything.core.types import Request
from rlanything.engines.cache import Branches
from rlanything.engines.choices import Cursor
from rlanything.engines.native import NativeEngine

CHOICES = st.lists(st.lists(st.integers(3, 6), max_size=5).map(lambda x: (*x, 2)), min_size=1, max_size=12)


@given(CHOICES, st.randoms(use_true_random=False))
def test_every_walk_ends_at_a_choice(choices, rng):
    cursor, taken = Cursor(choices), ()
    while cursor.allowed:
        expected = {c[len(taken)] for c in choices if c[: len(taken)] == taken}
        assert cursor.allowed == tuple(sorted(expected))
        token = rng.choice(cursor.allowed)
        cursor.advance(token)
        taken += (token,)
    assert taken in choices


@given(CHOICES)
def test_every_choice_can_be_walked(choices):
    for choice in choices:
        cursor = Cursor(choices)
        for token in choice:
            cursor.advance(token)
        assert cursor.allowed == ()


def test_leaving_the_set_is_refused():
    with pytest.raises(ValueError, match="token 9 is not among the allowed tokens"):
        Cursor([(1, 2)]).advance(9)


@pytest.mark.parametrize("choices", [[], [()], [(1, 2), ()]])
def test_empty_choices_are_refused(choices):
    with pytest.raises(ValueError, match="at least one"):
        Cursor(choices)


def test_a_choice_inside_another_is_refused():
    with pytest.raises(ValueError, match="prefix"):
        Cursor([(1, 2), (5,), (1, 2, 3)])


def test_forced_tokens_need_no_forward_pass(monkeypatch):
    engine = NativeEngine(cases.qwen2(), cases.tokenizer())
    monkeypatch.setattr(Branches, "feed", lambda *_: pytest.fail("a forward pass for certain tokens"))
    only = engine.generate([Request((5, 6, 7), seed, 8, choices=((9, 9, 8, 2),)) for seed in range(3)])
    assert {c.ids for c in only} == {(9, 9, 8, 2)}
    assert {c.logprobs for c in only} == {(0.0,) * 4}
    assert only[0].allowed == ((9,), (9,), (8,), (2,))


def test_forced_tokens_are_fed_with_what_follows(monkeypatch):
    fed = []
    feed = Branches.feed
    monkeypatch.setattr(
        Branches, "feed", lambda rows, tokens: fed.append([list(row) for row in tokens]) or feed(rows, tokens)
    )
    engine = NativeEngine(cases.qwen2(), cases.tokenizer())
    choices = ((9, 10, 11, 12, 2), (9, 10, 11, 13, 2))
    completion = engine.generate([Request((5, 6, 7), 0, 8, choices=choices)])[0]
    assert fed == [[[7, 9, 10, 11]]]
    assert completion.logprobs[:3] == (0.0,) * 3
    assert completion.logprobs[3] < 0.0


def test_many_random_sets_stay_inside():
    engine = NativeEngine(cases.llama(), cases.tokenizer())
    rng = random.Random(0)
    requests = [Request(cases.words(rng, 1, 9), seed, 8, 3.0, cases.actions(rng, 9)) for seed in range(200)]
    for request, completion in zip(requests, engine.generate(requests), strict=True):
        assert completion.ids in request.choices
        assert completion.finished
        for token, allowed in zip(completion.ids, completion.allowed, strict=True):
            assert token in allowed
