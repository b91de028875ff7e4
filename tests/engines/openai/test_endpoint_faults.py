"""The engine against a real server that fails: what is tried again, what is a value, and what ends the work."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from endpoint_server import KEY, MODEL, Endpoint, Handler, serving

from rlanything.config import Endpoint as Section
from rlanything.core.errors import ConfigError, MachineError
from rlanything.core.types import Completion, Request
from rlanything.engines.openai import asking
from rlanything.engines.openai.engine import OpenAIEngine
from rlanything.engines.openai.text_ids import TextChat

CHAT = TextChat()


def engine(
    server: Endpoint, keep: Path | None = None, said: list[str] | None = None, **changes: Any
) -> OpenAIEngine:
    lines = [] if said is None else said
    return OpenAIEngine(Section(**server.section(**changes)), "adapter", keep, lines.append)


def ask(text: str = "hello", seed: int = 1) -> Request:
    return Request(CHAT.start([{"role": "user", "content": text}]), seed, 64, 0.8)


def text(found: Completion) -> str:
    return CHAT.decode(found.ids)


PASSING = (
    "drop",
    "429",
    "429 0",
    "429 1",
    "500",
    "503",
    "408",
    "truncated",
    "slow 4",
    "drip 0.1",
    "malformed",
)
PASSING += ("no_json", "no_choices", "content", "not_utf8", "number", "deep", "many", "huge", "error_200")


@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_that_passes_costs_another_attempt_and_nothing_else(fault):
    limit = 2.0 if fault.startswith(("slow", "drip")) else 30.0
    with serving([fault]) as server:
        found = engine(server, timeout_s=limit, max_reply_mb=2).generate([ask()])
    assert text(found[0]) == "hello 1"
    assert found[0].finished
    assert len(server.seen) == 2


def test_a_retry_after_is_waited_for_and_shown():
    said: list[str] = []
    with serving(["429 1"]) as server:
        start = time.monotonic()
        engine(server, said=said).generate([ask()])
    assert time.monotonic() - start >= 1
    assert len(said) == 1
    assert "endpoint of the adapter: 429: fault 429; attempt 2 of 4 in 1.0 s" in said[0]


@pytest.mark.parametrize("after", ["0", "Sun, 06 Nov 1994 08:49:37 GMT"])
def test_a_retry_after_that_says_nothing_makes_no_wait_shorter(monkeypatch, after):
    monkeypatch.setattr(asking, "delay", lambda number, *_: 0.1 * number)
    said: list[str] = []
    with serving([f"429 {after}"] * 3) as server:
        start = time.monotonic()
        engine(server, said=said).generate([ask()])
    assert time.monotonic() - start >= 0.6


def test_a_retry_after_that_is_too_long_ends_the_work_at_once():
    with serving(["429 3600"]) as server, pytest.raises(MachineError, match="asks to wait 3600 s"):
        engine(server).generate([ask()])
    assert len(server.seen) == 1


@pytest.mark.parametrize("fault", ["drop", "500", "429", "truncated", "error_200"])
def test_an_endpoint_that_never_answers_ends_the_run_and_invents_no_reply(fault):
    with (
        serving(always=fault) as server,
        pytest.raises(MachineError, match=r"failed in 4 attempts.*same command"),
    ):
        engine(server).generate([ask()])
    assert len(server.seen) == 4


@pytest.mark.parametrize("fault", ["malformed", "no_json", "not_utf8", "deep", "many", "number", "content"])
def test_an_answer_that_is_never_readable_is_an_invalid_reply(fault):
    said: list[str] = []
    with serving([fault] * 4) as server:
        asking = engine(server, said=said)
        found = asking.generate([ask()])
    assert found == [Completion((), (), (), False)]
    assert asking.take_usage().empty == 1
    assert "1 replies without a text: unreadable answer" in said[-1]


@pytest.mark.parametrize("fault", ["null", "filtered", "413", "code 400 context_length_exceeded"])
def test_a_reply_that_the_endpoint_withholds_is_invalid_without_another_attempt(fault):
    with serving([fault]) as server:
        asking = engine(server)
        assert asking.generate([ask()]) == [Completion((), (), (), False)]
    assert asking.take_usage().empty == len(server.seen) == 1


def test_a_full_context_is_asked_again_and_then_an_invalid_reply():
    with serving(["say 500 Context size has been exceeded."] * 5) as server:
        asking = engine(server)
        assert asking.generate([ask()]) == [Completion((), (), (), False)]
        assert text(asking.generate([ask("b")])[0]) == "b 1", "it was full once, of what others had asked"
    assert asking.take_usage().empty == 1
    assert len(server.seen) == 6


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("401", "key_env"),
        ("403", "key_env"),
        ("404", "base_url"),
        ("301", "not followed"),
        ("422", "refuses"),
    ],
)
def test_a_refusal_ends_the_work_at_once(fault, told):
    with serving(always=fault) as server, pytest.raises(ConfigError, match=f"endpoints.adapter.*{told}"):
        engine(server, concurrency=1).generate([ask(), ask("b")])
    assert len(server.seen) == 1


def test_a_quota_that_is_spent_ends_the_work_at_once():
    with serving(["code 429 insufficient_quota"]) as server, pytest.raises(ConfigError):
        engine(server).generate([ask()])


def test_another_model_that_answers_ends_the_work():
    with serving(["other_model"]) as server, pytest.raises(ConfigError, match=r"another-model.*answers_as"):
        engine(server).generate([ask()])
    with serving(["other_model"]) as server:
        assert text(engine(server, answers_as="another-model").generate([ask()])[0]) == "TEXT"


def test_one_request_fails_and_the_others_are_kept(tmp_path):
    with serving(["", "500", "500", "500", "500"]) as server:
        with pytest.raises(MachineError):
            engine(server, tmp_path, concurrency=1).generate([ask("a"), ask("b")])
        found = engine(server, tmp_path, concurrency=1).generate([ask("a"), ask("b")])
    assert [text(one) for one in found] == ["a 1", "b 1"]
    assert len(server.seen) == 6, "a is asked once, b once more"


def test_a_damaged_kept_reply_is_asked_for_again(tmp_path):
    with serving() as server:
        engine(server, tmp_path).generate([ask()])
        (kept,) = tmp_path.rglob("*.json")
        for damage in ("{", "[]", '{"text": 1}'):
            kept.write_text(damage)
            assert text(engine(server, tmp_path).generate([ask()])[0]) == "hello 1"
    assert len(server.seen) == 4


def test_a_cut_reply_keeps_its_text_and_a_lone_surrogate_is_replaced():
    with serving(["cut", "surrogate"]) as server:
        asking = engine(server, concurrency=1)
        cut, odd = asking.generate([ask("a"), ask("b")])
    assert (text(cut), cut.finished, asking.take_usage().cut) == ("TEXT", False, 1)
    assert text(odd) == "a\ufffdb"


def test_usage_that_the_server_does_not_tell_is_counted_and_not_zero_tokens():
    with serving(usage=False) as server:
        asking = engine(server, input_price=1.0, output_price=2.0)
        asking.generate([ask()])
    assert asking.take_usage().metrics("adapter", asking.endpoint)["endpoint/adapter/unmetered"] == 1
    with serving(["float", ""]) as server:
        asking = engine(server, input_price=1.0, output_price=2.0, concurrency=1)
        asking.generate([ask("a"), ask("b")])
    metrics = asking.take_usage().metrics("adapter", asking.endpoint)
    assert metrics["endpoint/adapter/unmetered"] == 1
    assert metrics["endpoint/adapter/prompt_tokens"] == 11
    assert metrics["endpoint/adapter/cost"] == pytest.approx((11 * 1 + 14 * 2) / 1e6)


def test_the_key_is_in_no_message_no_reply_and_no_kept_file(tmp_path):
    said: list[str] = []
    with serving(["key", "500"]) as server:
        asking = engine(server, tmp_path, said, concurrency=1)
        found = asking.generate([ask("a"), ask("b")])
        assert text(found[0]) == "your key is [key]"
        server.key = "another key"
        with pytest.raises(ConfigError) as refused:
            asking.generate([ask("c")])
    told = [str(refused.value), repr(refused.value), repr(vars(asking)), repr(asking._asking.key), *said]
    told += [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(KEY in one for one in told)
    assert "Incorrect API key provided: Bearer [key]" in str(refused.value)


def test_no_redirect_is_followed_and_no_cookie_is_sent():
    with serving(["302"]) as server, pytest.raises(ConfigError, match=r"elsewhere\.example"):
        engine(server).generate([ask()])
    assert server.paths == ["/v1/chat/completions"]


def test_of_many_models_the_nearest_names_are_shown():
    many = tuple(f"family-{number}" for number in range(300))
    with serving(models=many) as server, pytest.raises(ConfigError) as caught:
        engine(server, model="family_7").check()
    assert "did you mean 'family-7'" in str(caught.value)
    assert str(caught.value).endswith("and 290 more")
    with serving(models=()) as server, pytest.raises(ConfigError, match="lists no models"):
        engine(server).check()


@pytest.mark.parametrize("listed", [404, 405, 501, "no JSON"])
def test_an_endpoint_that_lists_no_models_is_told_what_it_needs(monkeypatch, listed):
    status, body = (listed, b"") if isinstance(listed, int) else (200, listed.encode())
    monkeypatch.setattr(Handler, "do_GET", lambda handler: handler.send(status, body))
    with serving() as server:
        with pytest.raises(
            (ConfigError, MachineError), match=r"needs endpoints\.adapter\.lists_models=false"
        ):
            engine(server).check()
        engine(server, lists_models=False).check()


def test_the_check_finds_a_wrong_model_key_and_address():
    with serving() as server:
        engine(server).check()
        with pytest.raises(
            ConfigError, match=rf"endpoints.adapter.model = 'local-modle'.*did you mean '{MODEL}'"
        ):
            engine(server, model="local-modle").check()
        with pytest.raises(ConfigError, match=r"endpoints.adapter.base_url.*not there"):
            engine(server, base_url=server.url + "/v2").check()
        server.key = "another key"
        with pytest.raises(ConfigError, match=r"key_env = TEST_ENDPOINT_KEY: the endpoint refuses the key"):
            engine(server).check()
        with pytest.raises(ConfigError, match=r"key_env = null: the endpoint wants a key"):
            engine(server, key_env=None).check()
        address = server.url
    with pytest.raises(MachineError, match="failed in 2 attempts"):
        engine(server, base_url=address, attempts=2).check()
    assert server.seen == []
