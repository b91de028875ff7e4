"""The engine against vLLM's own server, and the faults of `test_endpoint_faults.py` between the two.

Skipped where vLLM is not installed. One server is started for all tests.
"""

from __future__ import annotations

import re
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import engine_cases as cases
import pytest
import test_endpoint_pictures as pictures
from endpoint_server import KEY, MODEL, Endpoint, serving
from served_cases import wait_until
from test_endpoint_faults import ask, engine, text

from rlanything.core.errors import ConfigError, MachineError
from rlanything.core.types import Completion
from rlanything.engines import checkpoint
from rlanything.engines.vllm.instance import BLOCK
from rlanything.engines.vllm.served import process
from rlanything.engines.vllm.served.process import Process

CONTEXT = 512
ASKED = [ask("hello", seed=1), ask("put the mug on the desk", seed=2)]
UNREADABLE = "unreadable answer: "
PASSING = {
    "drop": "ServerDisconnected|Connection reset",
    "429": "429: fault 429",
    "429 1": "429: fault 429; attempt 2 of 4 in 1.0 s",
    "500": "500: fault 500",
    "503": "503: fault 503",
    "truncated": "ClientPayloadError",
    "slow 30": "no whole answer within 15 s",
    "drip 0.5": "no whole answer within 15 s",
    "malformed": UNREADABLE,
    "no_json": UNREADABLE,
    "no_choices": f"{UNREADABLE}it holds no choices",
    "deep": UNREADABLE,
    "huge": "an answer of more than 2 MB",
    "error_200": "an error with status 200: overloaded",
}
"""A fault, and what is said of it."""


class Vllm:
    """A running server of vLLM with a tiny random model. It wants the key of the tests.

    model: the folder of another model. program: the command of another server.
    """

    def __init__(self, folder, model=None, program=process.PROGRAM) -> None:
        if model is None:
            model = folder / "model"
            checkpoint.save(cases.qwen2(), cases.fresh_tokenizer(cases.CHATML), model)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        values = {"model": model, "served-model-name": MODEL, "host": "127.0.0.1", "port": port}
        values |= {"api-key": KEY, "dtype": "float32", "max-model-len": CONTEXT, "block-size": BLOCK}
        values |= {
            "kv-cache-memory-bytes": 50_000_000,
            "gpu-memory-utilization": 0.01,
            "generation-config": "vllm",
        }
        words = [part for name, value in values.items() for part in (f"--{name}", str(value))]
        folder.joinpath("process").mkdir()
        environment = process.environment("cpu", folder / "process")
        self.process = Process(program, [*words, "--enforce-eager"], environment, folder / "process")

    def is_up(self) -> bool:
        assert not self.process.ended, self.process.last_words()
        with suppress(OSError):
            return urllib.request.urlopen(f"{self.address}/health").status == 200
        return False


@pytest.fixture(scope="module")
def vllm(tmp_path_factory) -> Iterator[Vllm]:
    cases.needs_vllm()
    server = Vllm(tmp_path_factory.mktemp("vllm"))
    try:
        wait_until(server.is_up, 300)
        yield server
    finally:
        if not server.process.ended:
            server.process.stop()


@pytest.fixture(scope="module")
def expected(vllm) -> list[Completion]:
    """What vLLM answers where nothing fails."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEST_ENDPOINT_KEY", KEY)
        found = engine(Endpoint(), base_url=f"{vllm.address}/v1", timeout_s=60).generate(ASKED)
    assert all(text(one) for one in found)
    assert found[0] != found[1]
    return found


@pytest.mark.parametrize(("fault", "words"), PASSING.items())
def test_a_fault_that_passes_costs_another_attempt_and_the_reply_is_vllms(vllm, expected, fault, words):
    said: list[str] = []
    with serving([fault], upstream=vllm.address, key=None) as server:
        asking = engine(server, said=said, timeout_s=15.0, max_reply_mb=2, concurrency=1)
        assert asking.generate(ASKED) == expected
    assert len(server.seen) == 3
    assert len(said) == 1
    assert re.search(words, said[0])
    usage = asking.take_usage()
    assert (usage.empty, usage.cut) == (0, sum(not one.finished for one in expected))


@pytest.mark.parametrize("fault", ["drop", "500", "429", "truncated"])
def test_answers_that_never_arrive_end_the_run(vllm, fault):
    with (
        serving(always=fault, upstream=vllm.address, key=None) as server,
        pytest.raises(MachineError, match=r"failed in 4 attempts.*same command"),
    ):
        engine(server).generate(ASKED[:1])


def test_another_model_that_answers_ends_the_run(vllm):
    with (
        serving(["other_model"], upstream=vllm.address, key=None) as server,
        pytest.raises(ConfigError, match=r"another-model.*answers_as"),
    ):
        engine(server, timeout_s=60).generate(ASKED[:1])


def test_what_vllm_refuses_by_itself(vllm, monkeypatch):
    """Nothing stands between: these are vLLM's own answers."""
    there = {"base_url": f"{vllm.address}/v1", "timeout_s": 60}
    engine(Endpoint(), **there).check()
    with pytest.raises(
        ConfigError, match=rf"endpoints\.adapter\.model = 'local-modle'.*did you mean '{MODEL}'"
    ):
        engine(Endpoint(), **there, model="local-modle").check()
    with pytest.raises(ConfigError, match=r"404: The model `local-modle` does not exist"):
        engine(Endpoint(), **there, model="local-modle").generate(ASKED[:1])
    with pytest.raises(ConfigError, match=r"base_url.*not there"):
        engine(Endpoint(), **{**there, "base_url": f"{vllm.address}/v2"}).check()
    long = engine(Endpoint(), **there)
    assert long.generate([ask("xq" * CONTEXT)]) == [Completion((), (), (), False)]
    assert long.take_usage().empty == 1
    with pytest.raises(ConfigError, match=r"400: max_tokens=1200 cannot be greater than max_model_len=512"):
        engine(Endpoint(), **there).generate([replace(ASKED[0], max_tokens=1200)])
    monkeypatch.setenv("TEST_ENDPOINT_KEY", "another-key")
    with pytest.raises(ConfigError, match=r"key_env = TEST_ENDPOINT_KEY: the endpoint refuses the key"):
        engine(Endpoint(), **there).check()


def test_vllm_refuses_pictures_for_a_model_that_reads_text(vllm, store):
    asking = pictures.engine(Endpoint(), store, base_url=f"{vllm.address}/v1", timeout_s=60)
    with pytest.raises(
        ConfigError, match=rf"model = '{MODEL}': the endpoint refuses the pictures of a request \(400"
    ):
        asking.generate([pictures.ask("what?", 0)])


def test_a_server_that_was_killed_ends_the_run(vllm):
    """The last test of the file: nobody asks the server after it."""
    vllm.process.kill()
    with pytest.raises(MachineError, match=r"failed in 2 attempts.*same command"):
        engine(Endpoint(), base_url=f"{vllm.address}/v1", attempts=2).generate(ASKED[:1])
