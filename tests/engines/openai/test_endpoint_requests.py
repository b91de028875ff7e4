"""What the engine sends: messages, seeds, limits, and how many at once."""

from __future__ import annotations

import threading
import time

import pytest
from endpoint_server import MODEL, serving
from test_endpoint_faults import CHAT, ask, engine, text

from rlanything.core.errors import ConfigError
from rlanything.core.types import Request
from rlanything.engines.openai.text_ids import TextChat


def test_a_request_holds_the_conversation_the_seed_and_the_limits():
    chat = TextChat()
    prompt = chat.start([{"role": "system", "content": "be brief"}, {"role": "user", "content": "é\n"}])
    prompt = chat.extend(prompt, chat.encode_choice("go"), {"role": "user", "content": "done"})
    with serving() as server:
        engine(server, extra={"top_p": 0.9}).generate([Request(prompt, (1 << 40) + 5, 99, 0.5)])
    said = [("system", "be brief"), ("user", "é\n"), ("assistant", "go"), ("user", "done")]
    assert server.seen == [
        {
            "model": MODEL,
            "messages": [{"role": role, "content": content} for role, content in said],
            "max_tokens": 99,
            "temperature": 0.5,
            "seed": 5,
            "top_p": 0.9,
        }
    ]


def test_fields_can_be_left_out_and_the_length_renamed():
    with serving() as server:
        changes = {"omit": ("seed", "temperature"), "length_field": "max_completion_tokens"}
        engine(server, **changes).generate([ask()])
    assert set(server.seen[0]) == {"model", "messages", "max_completion_tokens"}


def test_votes_are_asked_one_by_one_also_where_no_seed_is_sent(tmp_path):
    """They differ in their seed alone. Else one reply would be all votes on a step."""
    numbers = iter(range(9))
    with serving(answer=lambda body: str(next(numbers))) as server:
        asking = engine(server, tmp_path, omit=("seed",), concurrency=1)
        first = asking.generate([ask(seed=seed) for seed in (1, 2, 3, 1)])
        assert [text(one) for one in first] == ["0", "1", "2", "0"]
        assert asking.generate([ask(seed=seed) for seed in (1, 2, 3, 1)]) == first
    assert len(server.seen) == 3


def test_replies_come_in_the_order_of_the_requests_and_no_more_at_once_than_allowed():
    together, first = threading.Barrier(2, timeout=60), iter(range(2))

    def slowly(body):
        if next(first, None) is not None:
            together.wait()
        time.sleep(0.02 * (body["seed"] % 3))
        return str(body["seed"])

    with serving(answer=slowly) as server:
        asking = engine(server, concurrency=3, timeout_s=120.0)
        found = asking.generate([ask(seed=seed) for seed in range(20)])
    assert [text(one) for one in found] == [str(seed) for seed in range(20)]
    assert len(server.seen) == 20, "the first two were answered together, and none was asked again"
    assert 1 < server.most <= 3


def test_equal_requests_are_asked_once_and_log_probs_are_absent():
    with serving() as server:
        asking = engine(server)
        one, two = asking.generate([ask(), ask()])
    assert one == two
    assert one.logprobs == one.allowed == ()
    assert asking.take_usage().replies == len(server.seen) == 1
    assert asking.take_usage().replies == 0


def test_a_kept_reply_needs_no_server_and_counts_the_same(tmp_path):
    with serving() as server:
        first = engine(server, tmp_path)
        found = first.generate([ask(), ask("b")])
    again = engine(server, tmp_path)
    assert again.generate([ask(), ask("b")]) == found
    assert again.take_usage() == first.take_usage()


@pytest.mark.long
def test_a_rate_limit_spreads_the_requests_and_is_shown():
    said: list[str] = []
    with serving() as server:
        start = time.monotonic()
        engine(server, said=said, requests_per_minute=60).generate([ask(seed=seed) for seed in range(4)])
    assert time.monotonic() - start >= 1.9, "a second's worth is saved, the others wait a second each"
    assert "for the rate limit" in said[0]


def test_choices_are_refused():
    prompt = CHAT.start([{"role": "user", "content": "x"}])
    request = Request(prompt, 0, 4, choices=(CHAT.encode_choice("a"),))
    with serving() as server, pytest.raises(ValueError, match="cannot be held to choices"):
        engine(server).generate([request])


def test_a_missing_key_is_named_before_anything_is_asked(monkeypatch):
    with serving() as server:
        monkeypatch.delenv("TEST_ENDPOINT_KEY")
        with pytest.raises(ConfigError, match=r"endpoints.adapter.key_env = TEST_ENDPOINT_KEY.*not set"):
            engine(server)
        monkeypatch.setenv("TEST_ENDPOINT_KEY", "short")
        with pytest.raises(ConfigError, match="cannot be a key") as refused:
            engine(server)
        assert "short" not in str(refused.value)
        server.key = None
        assert text(engine(server, key_env=None).generate([ask()])[0]) == "hello 1"
    assert len(server.seen) == 1
