"""What of the contract of all engines (`test_engine_contract.py`) holds for an endpoint: all but ids and log-probs.

Its tokens are those of another model, so they follow no softmax of ours, and no choices or weights can be given to it.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from endpoint_server import serving
from test_endpoint_faults import CHAT, ask, engine, text

from rlanything.core.types import Request

ASKED = [ask(f"question {k % 5}", seed=k % 3) for k in range(20)]


def test_nothing_to_do():
    with serving() as server:
        one = engine(server)
        assert one.generate([]) == []
        one.release(["nobody"])
        one.sync(1)
    assert server.seen == []


def test_company_and_order_change_nothing():
    with serving() as server:
        together = engine(server).generate(ASKED)
        order = random.Random(0).sample(range(len(ASKED)), len(ASKED))
        one = engine(server)
        shuffled = [one.generate([ASKED[k] for k in part]) for part in (order[:7], order[7:])]
        alone = [one.generate([request])[0] for request in ASKED]
    for k, found in zip(order, shuffled[0] + shuffled[1], strict=True):
        assert found == together[k] == alone[k]
    assert text(together[7]) == "question 2 1"


PROMPT = ASKED[0].prompt_ids


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Request((), 0, 4), "a prompt must end with the assistant's turn"),
        (Request(PROMPT, 0, 0), "max_tokens of at least 1"),
        (Request(PROMPT, 0, 4, -0.5), "temperature of at least 0"),
        (Request((-1, *PROMPT), 0, 4), "must begin with one of the marks|not an id of a text"),
        (Request(PROMPT, 0, 4, choices=((5,),)), "cannot be held to choices"),
    ],
)
def test_requests_that_cannot_be_served_are_refused_before_any_is_asked(request_, words):
    with serving() as server, pytest.raises(ValueError, match=words):
        engine(server).generate([ask(), request_])
    assert server.seen == []


def test_completions_have_the_version_0_whatever_is_named():
    with serving() as server:
        one = engine(server)
        before = one.generate(ASKED)
        one.sync(7)
        assert one.generate(ASKED) == before
    assert {found.version for found in before} == {0}
    assert all(found.logprobs == () and CHAT.decode(found.ids) for found in before)


def test_closing_one_engine_leaves_the_others():
    with serving() as server:
        first, second = engine(server), engine(server)
        expected = first.generate(ASKED)
        second.close()
        second.close()
        assert first.generate(ASKED) == expected


def test_engines_leave_the_process_as_it_was():
    torch.manual_seed(5)
    states = torch.random.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    with serving() as server:
        engine(server).generate(ASKED)
    assert torch.equal(torch.random.get_rng_state(), states[0])
    assert (np.random.get_state()[1].tolist(), random.getstate()) == states[1:]
