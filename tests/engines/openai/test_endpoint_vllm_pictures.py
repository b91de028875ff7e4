"""The engine against vLLM's own server of a tiny model that reads pictures. Skipped where vLLM is not installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import engine_cases as cases
import pytest
from endpoint_server import Endpoint, serving
from served_cases import wait_until
from sight_cases import folder
from test_endpoint_pictures import ask, engine, text
from test_endpoint_vllm import Vllm

OPTIONS = ("--skip-mm-profiling", "--no-mm-device-do-normalize", "--mm-processor-cache-gb", "0")


@pytest.fixture(scope="module")
def vllm(tmp_path_factory) -> Iterator[Vllm]:
    cases.needs_vllm()
    program = [sys.executable, str(Path(__file__).with_name("sighted_chat.py")), *OPTIONS]
    server = Vllm(tmp_path_factory.mktemp("vllm"), folder("qwen2_5_vl"), program)
    try:
        wait_until(server.is_up, 300)
        yield server
    finally:
        if not server.process.ended:
            server.process.stop()


def test_the_reply_follows_from_the_picture_and_is_the_same_again(vllm, store):
    asking = engine(Endpoint(), store, base_url=f"{vllm.address}/v1", timeout_s=60)
    asking.check()
    asked = [ask("which?", 0), ask("which?", 1), ask("which?"), ask("before", 0, "then", 1, "after")]
    found = asking.generate(asked)
    assert all(text(one) for one in found)
    assert found[0] != found[1], "the same words and seed, another picture"
    usage = asking.take_usage()
    assert (usage.empty, usage.unmetered) == (0, 0)
    tokens = [_tokens(asking, one) for one in asked[:3]]
    assert tokens[0] == tokens[1] > tokens[2], "the server counts the tokens of a picture"
    assert engine(Endpoint(), store, base_url=f"{vllm.address}/v1", timeout_s=60).generate(asked) == found


def test_faults_that_pass_leave_vllms_reply(vllm, store):
    asked = [ask("which?", 2)]
    expected = engine(Endpoint(), store, base_url=f"{vllm.address}/v1", timeout_s=60).generate(asked)
    with serving(["drop", "500"], upstream=vllm.address, key=None) as server:
        assert engine(server, store, timeout_s=60.0).generate(asked) == expected
    assert len(server.seen) == 3


def _tokens(asking, request) -> int:
    """The prompt tokens of one request, by the server's count."""
    asking.generate([request])
    return asking.take_usage().prompt_tokens
