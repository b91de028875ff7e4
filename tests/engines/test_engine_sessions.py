"""What is read once, what is read again, and what is forgotten."""

from __future__ import annotations

import random

import engine_cases as cases
import pytest
import torch

from rlanything.core.types import Request
from rlanything.engines.cache import Branches, Trunks
from rlanything.engines.native import NativeEngine


class Counter:
    """Counts tokens that the model reads: in trunks, and in rows."""

    def __init__(self, monkeypatch) -> None:
        self.trunk = self.rows = 0
        read, run = Trunks.read, Branches._run

        def counted_read(weights, rotary, prompts):
            self.trunk += sum(map(len, prompts))
            return read(weights, rotary, prompts)

        def counted_run(branches, tokens, **options):
            self.rows += sum(map(len, tokens))
            return run(branches, tokens, **options)

        monkeypatch.setattr(Trunks, "read", staticmethod(counted_read))
        monkeypatch.setattr(Branches, "_run", counted_run)

    def since(self) -> tuple[int, int]:
        counts = self.trunk, self.rows
        self.trunk = self.rows = 0
        return counts


@pytest.fixture(scope="module")
def model():
    return cases.qwen2()


@pytest.fixture
def engine(model):
    return NativeEngine(model, cases.tokenizer(), max_batch=8)


@pytest.fixture
def counter(monkeypatch):
    return Counter(monkeypatch)


START = tuple(range(20, 50))
EITHER = ((9, 10, 2), (9, 11, 2))


def turn(engine, texts):
    """One turn of all sessions; what each session then holds."""
    requests = [Request(text, 0, 4, choices=EITHER, session=name) for name, text in texts.items()]
    return {r.session: r.prompt_ids + c.ids for r, c in zip(requests, engine.generate(requests), strict=True)}


def test_equal_prompts_are_read_once(engine, counter):
    texts = turn(engine, {f"{i}": START for i in range(6)})
    assert counter.since() == (29, 6 * 2)  # the prompt but its last token, then that token and the forced one
    assert {len(text) for text in texts.values()} == {33}


def test_only_new_tokens_are_read(engine, counter):
    texts = turn(engine, {f"{i}": START for i in range(6)})
    counter.since()
    turn(engine, {name: (*text, 60, 61, 62) for name, text in texts.items()})
    assert counter.since() == (0, 6 * (2 + 3 + 1))  # two sampled ones, the observation, one forced one


def test_dropped_sessions_are_forgotten_and_can_return(engine, model, counter):
    texts = turn(engine, {f"{i}": START for i in range(6)})
    fewer = turn(engine, {name: texts[name] + (60,) for name in "135"})
    assert len(engine._sessions) == 3
    counter.since()
    back = turn(engine, {**{name: (*text, 61) for name, text in fewer.items()}, "0": texts["0"] + (60,)})
    assert counter.since() == (33, 3 * 4 + 2)
    assert len(back) == 4


@pytest.mark.parametrize("change", [10, 29, 30, 32, 35])
def test_a_changed_text_is_read_again_from_the_change_on(engine, model, counter, change):
    texts = turn(engine, {f"{i}": START for i in range(4)})
    texts = turn(engine, {name: (*text, 60, 61) for name, text in texts.items()})
    changed = {name: (*text[:change], 99, *text[change + 1 :], 62) for name, text in texts.items()}
    counter.since()
    requests = [Request(text, 5, 4, choices=EITHER, session=name) for name, text in changed.items()]
    completions = engine.generate(requests)
    assert cases.worst_error(model, requests, completions) < 1e-5
    trunk, _ = counter.since()
    assert (trunk > 0) == (change < 29)


def test_a_shorter_or_equal_prompt_is_served(engine, model):
    texts = turn(engine, {f"{i}": START for i in range(3)})
    for cut in (0, 1, 3, 20):
        shorter = {name: text[: len(text) - cut] for name, text in texts.items()}
        requests = [Request(text, 5, 6, session=name) for name, text in shorter.items()]
        assert cases.worst_error(model, requests, engine.generate(requests)) < 1e-5


def test_sessions_that_end_early_read_their_rest_later(engine, model):
    rng = random.Random(0)
    texts = {f"{i}": START for i in range(8)}
    for step in range(4):
        requests = [
            Request(text, 10 * step + int(name), 1 + 5 * (int(name) % 4), session=name)
            for name, text in texts.items()
        ]
        completions = engine.generate(requests)
        assert cases.worst_error(model, requests, completions) < 1e-5
        texts = {
            r.session: r.prompt_ids + c.ids + cases.words(rng, 1, 5)
            for r, c in zip(requests, completions, strict=True)
        }


def test_release_and_close(engine, counter):
    texts = turn(engine, {f"{i}": START for i in range(4)})
    engine.release(["1", "3", "unknown"])
    assert len(engine._sessions) == 2
    counter.since()
    turn(engine, {name: (*text, 60) for name, text in texts.items()})
    assert counter.since()[0] == 2 * 33 - 33 * (texts["1"] == texts["3"])
    engine.release(texts)
    assert len(engine._sessions) == 0
    turn(engine, {"a": START})
    engine.close()
    assert len(engine._sessions) == 0


def test_the_oldest_batches_make_room(engine):
    for batch in range(12):
        turn(engine, {f"{batch}/{i}": START for i in range(8)})
    assert len(engine._sessions) == 64


def test_more_sessions_than_a_batch_holds(engine, model):
    texts = {f"{i}": cases.words(random.Random(i), 3, 30) for i in range(21)}
    for _ in range(3):
        requests = [Request(text, 1, 5, session=name) for name, text in texts.items()]
        completions = engine.generate(requests)
        assert cases.worst_error(model, requests, completions) < 1e-5
        texts = {
            r.session: r.prompt_ids + c.ids + (70, 71) for r, c in zip(requests, completions, strict=True)
        }


def test_a_session_twice_in_a_call_is_refused(engine):
    with pytest.raises(ValueError, match="named twice"):
        engine.generate([Request(START, seed, 4, session="same") for seed in range(2)])


def test_a_group_is_read_once_and_its_votes_share_their_question(engine, counter):
    requests = [
        Request((*START[:cut], 60, 61, 62), vote, 4, choices=EITHER, group="g")
        for cut in (10, 20, 27)
        for vote in range(2)
    ]
    engine.generate(requests)
    # The longest prompt is the trunk, its last token excepted; each question's first two tokens are read once for
    # both votes, and each vote reads the last one and the forced answer token.
    assert counter.since() == (29, 2 * 2 + 6 * 2)


def test_sync_takes_over_the_weights_and_drops_the_sessions(counter):
    model = cases.qwen2(7)
    engine = NativeEngine(model, cases.tokenizer())
    texts = turn(engine, {"a": START})
    requests = [Request(texts["a"] + (60,), 3, 8, session="a")]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.1)
    stale = engine.generate(requests)
    assert cases.worst_error(model, requests, stale) > 1e-3
    engine.sync(1)
    counter.since()
    assert cases.worst_error(model, requests, engine.generate(requests)) < 1e-5
    assert counter.since()[0] == len(requests[0].prompt_ids) - 1
