"""What a request samples does not depend on how a run's requests are cut into calls, batches, passes or processes.

Tokens are equal. Log-probs are equal to rounding and not to the last bit: matrix products of one to three rows take
another path than larger ones, and sums over padded keys are grouped by the padded width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from unittest import mock

import engine_cases as cases
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlanything.core.types import Completion, Request
from rlanything.engines import cache, native
from rlanything.engines.native import NativeEngine

ROUNDING = 1e-5
WHOLE = 256


@pytest.fixture(scope="module")
def model():
    return cases.qwen2()


@dataclass(frozen=True)
class Division:
    """How the work is cut: engines that divide it, rows of a batch, tokens of a pass, (query, key) pairs of a pass,
    share of open rows at which a batch is copied, threads."""

    engines: int = 1
    rows: int = WHOLE
    read: int = cache.READ_TOKENS
    scores: int = cache.FEED_SCORES
    shrink: float = native.SHRINK
    threads: int = 1

    @contextmanager
    def applied(self) -> Iterator[None]:
        torch.set_num_threads(self.threads)
        try:
            with (
                mock.patch.object(cache, "READ_TOKENS", self.read),
                mock.patch.object(cache, "FEED_SCORES", self.scores),
                mock.patch.object(native, "SHRINK", self.shrink),
            ):
                yield
        finally:
            torch.set_num_threads(1)


DIVISIONS = st.builds(
    Division,
    engines=st.integers(1, 4),
    rows=st.sampled_from([1, 2, 3, 5, 8, WHOLE]),
    read=st.sampled_from([7, 64, cache.READ_TOKENS]),
    scores=st.sampled_from([60, 500, cache.FEED_SCORES]),
    shrink=st.sampled_from([0.0, 0.5, 1.0]),
)


@dataclass(frozen=True)
class Dialogue:
    """An episode of some turns: its opening, and what it reads after each."""

    name: str
    opening: cases.Ids
    seen: tuple[cases.Ids, ...]
    choices: tuple[cases.Ids, ...]


@st.composite
def dialogues(draw) -> list[Dialogue]:
    """Episodes of a few tasks: those of one task have the same opening."""
    rng = draw(st.randoms(use_true_random=False))
    openings = [cases.words(rng, 4, 30) for _ in range(draw(st.integers(1, 3)))]
    return [
        Dialogue(
            f"{k}",
            rng.choice(openings),
            tuple(cases.words(rng, 1, 6) for _ in range(rng.randint(1, 4))),
            cases.actions(rng, 4) if rng.random() < 0.5 else (),
        )
        for k in range(draw(st.integers(1, 9)))
    ]


def play(engine: NativeEngine, episodes: Sequence[Dialogue]) -> dict[str, list[Completion]]:
    """All turns of the episodes, which advance together and end one after the other."""
    said: dict[str, list[Completion]] = {e.name: [] for e in episodes}
    texts = {e.name: e.opening for e in episodes}
    for turn in range(4):
        going = [e for e in episodes if turn < len(e.seen)]
        requests = [
            Request(texts[e.name], 1000 * turn + int(e.name), 5, 0.8, e.choices, session=e.name)
            for e in going
        ]
        for episode, completion in zip(going, engine.generate(requests), strict=True):
            said[episode.name].append(completion)
            texts[episode.name] += completion.ids + episode.seen[turn]
    return said


@st.composite
def votes(draw) -> list[Request]:
    """Questions that branch off growing conversations, several votes on each."""
    rng = draw(st.randoms(use_true_random=False))
    requests = []
    for group in range(draw(st.integers(1, 4))):
        trunk = cases.words(rng, 3, 12)
        for step in range(rng.randint(1, 4)):
            trunk += cases.words(rng, 1, 5)
            question = trunk + cases.words(rng, 1, 4)
            seeds = [rng.randrange(10**9) for _ in range(3)]
            requests += [Request(question, seed, 1 + step, 1.0, group=f"{group}") for seed in seeds]
    return requests


def assert_same(one: Sequence[Completion], other: Sequence[Completion]) -> None:
    for left, right in zip(one, other, strict=True):
        assert (left.ids, left.allowed, left.finished) == (right.ids, right.allowed, right.finished)
        assert left.logprobs == pytest.approx(right.logprobs, abs=ROUNDING)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(dialogues(), DIVISIONS)
def test_episodes_say_the_same_however_they_are_divided(model, episodes, division):
    whole = play(NativeEngine(model, cases.tokenizer(), max_batch=WHOLE), episodes)
    with division.applied():
        parts = [
            play(
                NativeEngine(model, cases.tokenizer(), max_batch=division.rows),
                episodes[k :: division.engines],
            )
            for k in range(division.engines)
        ]
    divided = {name: said for part in parts for name, said in part.items()}
    assert divided.keys() == whole.keys()
    for name, said in whole.items():
        assert_same(said, divided[name])


@settings(max_examples=25, deadline=None, derandomize=True)
@given(votes(), DIVISIONS, st.randoms(use_true_random=False))
def test_votes_are_the_same_however_they_are_divided_and_ordered(model, requests, division, rng):
    whole = NativeEngine(model, cases.tokenizer(), max_batch=WHOLE).generate(requests)
    order = list(range(len(requests)))
    rng.shuffle(order)
    with division.applied():
        for k in range(division.engines):
            mine = order[k :: division.engines]
            engine = NativeEngine(model, cases.tokenizer(), max_batch=division.rows)
            assert_same([whole[i] for i in mine], engine.generate([requests[i] for i in mine]))


@settings(max_examples=10, deadline=None)
@given(dialogues())
def test_the_same_calls_give_the_same_bits(model, episodes):
    first, second = (play(NativeEngine(model, cases.tokenizer(), max_batch=4), episodes) for _ in range(2))
    assert first == second


@settings(max_examples=2, deadline=None, derandomize=True)
@given(dialogues(), st.sampled_from([2, 4]))
def test_the_number_of_threads_changes_no_token(model, episodes, threads):
    alone = play(NativeEngine(model, cases.tokenizer()), episodes)
    with Division(threads=threads).applied():
        several = play(NativeEngine(model, cases.tokenizer()), episodes)
    for name, said in alone.items():
        assert_same(said, several[name])
