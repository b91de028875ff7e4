"""Waits, limits, ids of texts, the form of an answer, and the key: each by itself, over many values."""

from __future__ import annotations

import copy
import email.utils
import pickle
import random
import time

import pytest
from endpoint_server import KEY
from hypothesis import given, settings
from hypothesis import strategies as st

from rlanything.config import Endpoint as Section
from rlanything.core.errors import ConfigError
from rlanything.core.ids import canonical_json
from rlanything.engines.openai import text_ids
from rlanything.engines.openai.answers import SHOWN, Fault, Refused, Reply, read, shown
from rlanything.engines.openai.asking import same_model
from rlanything.engines.openai.backoff import Bucket, delay, retry_after
from rlanything.engines.openai.client import _without_user, proxy_of
from rlanything.engines.openai.engine import OpenAIEngine
from rlanything.engines.openai.key import Key
from rlanything.engines.openai.usage import Usage

texts = st.text(st.characters(codec="utf-8"))
seconds = st.floats(0.001, 1000.0)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)  # a busy machine takes longer than Hypothesis allows
@given(st.integers(1, 10_000), seconds, seconds, st.integers())
def test_a_wait_is_bounded_and_follows_from_its_seed(attempt, base, most, seed):
    wait = delay(attempt, base, most, random.Random(seed))
    assert 0 <= wait <= min(most, base * 2.0 ** min(attempt - 1, 32))
    assert wait == delay(attempt, base, most, random.Random(seed))


def test_waits_grow_and_are_spread():
    draw = random.Random(0)
    means = [sum(delay(n, 1.0, 60.0, draw) for _ in range(2000)) / 2000 for n in range(1, 9)]
    assert means == pytest.approx([min(60.0, 2.0 ** (n - 1)) / 2 for n in range(1, 9)], rel=0.1)


@pytest.mark.parametrize(
    "date", ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
)
def test_every_form_of_a_date_is_of_the_same_moment_wherever_this_machine_is(monkeypatch, date):
    """RFC 9110, section 5.6.7."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert retry_after(date, lambda: 784111777.0 - 30) == 30
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_retry_after_is_a_number_or_a_date():
    now = 1_700_000_000.0
    assert retry_after("7") == 7
    assert retry_after(email.utils.formatdate(now + 30, usegmt=True), lambda: now) == 30
    assert retry_after(email.utils.formatdate(now - 30, usegmt=True), lambda: now) == 0
    for value in (
        None,
        "",
        "-1",
        "soon",
        "nan",
        "inf",
        "1e3",
        "٣",
        "9" * 1000,
        "Mon, 99 Foo 2026 00:00:00 GMT",
    ):
        assert retry_after(value) is None


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0.1, 20)), min_size=1, max_size=30), st.floats(1, 600))
def test_no_more_flows_than_the_rate(bookings, per_minute):
    now = [0.0]
    bucket = Bucket(per_minute, lambda: now[0])
    starts, booked = [], 0.0
    for pause, units in bookings:
        now[0] += pause
        starts.append(now[0] + bucket.take(units))
        # All that was booked before this start has flowed in, but for one second's worth that may be saved.
        assert booked <= per_minute / 60 * (starts[-1] + 1) + 1e-6
        booked += units
    assert starts == sorted(starts)


def test_without_a_limit_nothing_waits():
    assert Bucket(None).take(1e9) == 0


@given(texts)
def test_a_text_comes_back_from_its_ids(text):
    ids = text_ids.encode(text)
    assert text_ids.decode(ids) == text
    assert len(ids) == -(-len(text.encode()) // text_ids.WIDTH)
    assert all(one >= 256 for one in ids), "no text holds a mark"


@given(
    st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), texts), min_size=1, max_size=4),
    texts,
)
def test_a_conversation_comes_back_from_its_prompt_and_grows_by_extending(said, reply):
    chat = text_ids.TextChat()
    messages = [{"role": role, "content": content} for role, content in said]
    prompt = chat.start(messages)
    assert text_ids.messages(prompt) == messages
    for response in (text_ids.encode(reply), chat.encode_choice(reply)):
        longer = chat.extend(prompt, response, {"role": "user", "content": "next"})
        assert longer[: len(prompt) + len(response)] == prompt + response
        grown = [*messages, {"role": "assistant", "content": reply}, {"role": "user", "content": "next"}]
        assert text_ids.messages(longer) == grown


@given(st.lists(st.integers(-5, 1 << 26), max_size=8))
def test_ids_that_are_no_prompt_are_refused(ids):
    with pytest.raises(ValueError):  # noqa: PT011  # several messages
        text_ids.messages([*ids, 0])


def same(text: str) -> str:
    return text


@given(
    st.integers(100, 599), st.binary(max_size=200) | values.map(lambda v: str(v).encode("utf-8", "replace"))
)
def test_no_bytes_of_a_server_raise(status, body):
    assert isinstance(read(status, {}, body, None, same), Reply | Fault | Refused)


@given(values, values, values, values)
def test_no_json_of_a_server_raises(content, usage, choices, model):
    message = {
        "choices": [{"message": {"content": content}, "finish_reason": usage}],
        "usage": usage,
        "model": model,
    }
    for data in (message, {"choices": choices}, {"error": content}, choices):
        try:
            body = canonical_json(data).encode()
        except ValueError:
            continue
        for status in (200, 400):
            found = read(status, {}, body, None, same)
            if isinstance(found, Reply):
                found.text.encode()
                Usage.of(found)


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 8192 tokens. However, you requested 9100 tokens",
        "request (14429 tokens) exceeds the available context size (8192 tokens), try increasing it",
        "prompt is too long: 215000 tokens > 200000 maximum",
    ],
)
def test_a_prompt_that_is_too_long_is_an_invalid_reply_in_the_words_of_every_server(words):
    """Of OpenAI, llama.cpp and Anthropic. The code of llama.cpp is the status again, as a number."""
    body = canonical_json({"error": {"message": words, "code": 400}}).encode()
    found = read(400, {}, body, None, same)
    assert isinstance(found, Reply)
    assert found.reason.startswith("the endpoint refused the request (400: ")


@pytest.mark.parametrize(
    ("words", "full"),
    [
        ("Context size has been exceeded.", True),
        ("the request exceeds the available context size. try increasing the context size", True),
        ("failed to allocate a context size of 8192 tokens", False),
        ("the maximum of tokens per minute is exceeded in this context", False),
    ],
)
def test_a_context_that_stays_full_is_an_invalid_reply_and_not_a_broken_server(words, full):
    """llama.cpp says so with status 500, and to all requests at once, when together they have filled its context."""
    found = read(500, {}, canonical_json({"error": {"message": words, "code": 500}}).encode(), None, same)
    assert isinstance(found, Fault)
    assert (found.final is not None) == full
    assert found.final is None or words in found.final.reason


@given(st.text())
def test_what_is_shown_of_a_server_is_one_short_line_of_visible_ascii(text):
    line = shown(text)
    assert line.isascii()
    assert line == "" or line.isprintable()
    assert len(line) <= 10 * SHOWN


DATES = ("-2024-08-06", "-20240806", "-2024-08", "-08-2024", "-05-06")


@pytest.mark.parametrize("version", [*DATES, "-0613", "-002", "-v0.3", "-latest", ":latest", "@20240620", ""])
def test_a_version_after_the_name_is_the_same_model(version):
    assert same_model(f"vertex-3{version}", "vertex-3")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("gpt-4o", "gpt-4"), ("gpt-4", "gpt-4o"), ("gpt-4o-mini", "gpt-4o"), ("gpt-4o-", "gpt-4o"),
        ("gpt-4o-audio-preview-2024-10-01", "gpt-4o"), ("gpt-4o-2024-mini", "gpt-4o"),
        ("claude-3-5", "claude-3"), ("claude-3-5-20241022", "claude-3"), ("claude-opus-4-1", "claude-opus-4"),
        ("qwen-2.5", "qwen"), ("qwen-72", "qwen"),
    ],
)  # fmt: skip
def test_another_word_or_a_small_number_after_the_name_is_another_model(name, wanted):
    assert not same_model(name, wanted)


def test_a_key_is_neither_printed_nor_copied_nor_pickled():
    key = Key(KEY)
    assert KEY not in f"{key} {key!r} {[key]}"
    assert key.masked(f"<{KEY}>") == "<[key]>"
    for copying in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="not pickled"):
            copying(key)


@pytest.mark.parametrize(
    "broken",
    [
        {"finish_reason": "error"},
        {"error": {"message": "upstream ended"}, "finish_reason": None},
        {"finish_reason": "abort"},
    ],
)
def test_a_reply_that_the_provider_broke_off_is_asked_for_again(broken):
    """OpenRouter says so inside of the choice, and vLLM's server when it is stopped, with status 200."""
    choice = {"message": {"content": "The step was go"}, **broken}
    found = read(200, {}, canonical_json({"choices": [choice]}).encode(), None, str)
    assert isinstance(found, Fault)
    assert "an error in the reply" in found.reason


def test_a_proxys_password_is_in_no_message():
    said = "ClientHttpProxyError: 407, url='http://bob:hunter2@127.0.0.1:8080' and https://example.org/a@b"
    assert _without_user(said) == (
        "ClientHttpProxyError: 407, url='http://***@127.0.0.1:8080' and https://example.org/a@b"
    )


@pytest.mark.parametrize(
    "proxy", ["http://bob:hun/ter2@127.0.0.1:8080", "http://bob:hun ter2@127.0.0.1:8080"]
)
def test_a_proxys_password_is_in_no_message_where_its_address_is_wrong(proxy):
    assert _without_user(f"InvalidURL: {proxy}", proxy) == "InvalidURL: http://***@127.0.0.1:8080"


def proxy(address: str) -> str | None:
    return proxy_of(Section(base_url=address, model="m"))


def test_a_proxy_without_a_scheme_speaks_http(monkeypatch):
    monkeypatch.setenv("https_proxy", "bob:hunter2@127.0.0.1:8080")
    monkeypatch.setenv("no_proxy", "inside.example")
    assert proxy("https://example.org/v1") == "http://bob:hunter2@127.0.0.1:8080"
    assert proxy("https://inside.example/v1") is None
    monkeypatch.setenv("https_proxy", "")
    assert proxy("https://example.org/v1") is None


@pytest.mark.parametrize("name", ["no_proxy", "NO_PROXY"])
def test_no_proxy_may_name_a_port(monkeypatch, name):
    for variable in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:8080")
    monkeypatch.setenv(name, "inside.example:8443, plain.example:443,[2001:db8::1]:8000")
    for address in ("inside.example:8443", "plain.example", "a.plain.example:443", "[2001:db8::1]:8000"):
        assert proxy(f"https://{address}/v1") is None
    for address in ("inside.example", "plain.example:8443", "[2001:db8::1]:8001"):
        assert proxy(f"https://{address}/v1") == "http://127.0.0.1:8080"


def test_a_proxy_of_another_kind_is_refused_before_any_work(monkeypatch):
    monkeypatch.setenv("https_proxy", "socks5h://bob:hunter2@127.0.0.1:1080")
    monkeypatch.delenv("no_proxy", raising=False)
    section = Section(base_url="https://example.org/v1", model="m", key_env=None, lists_models=False)
    with pytest.raises(
        ConfigError, match=r"https_proxy names a proxy of the kind socks5h://.*http and https"
    ) as caught:
        OpenAIEngine(section, "adapter")
    assert "bob" not in str(caught.value)
    assert "hunter2" not in str(caught.value)
    monkeypatch.setenv("no_proxy", "example.org")
    OpenAIEngine(section, "adapter")
