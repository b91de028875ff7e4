"""How servers come up: how they are looked after while they start, and when."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import engine_cases as cases
import psutil
import pytest
from served_cases import FAKE, REQUESTS, gone, listening, pids, wait_until

from rlanything.core.errors import MachineError, UserError
from rlanything.engines.vllm.served import server
from rlanything.engines.vllm.served.engine import VllmServers
from rlanything.engines.vllm.served.wire import Limits, LostError

SLOWLY = "import os, sys, time\ntime.sleep(1.5)\nos.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
"""A program that begins later than a server does."""


def test_one_client_looks_whether_a_server_is_up(opened, monkeypatch):
    looks = []

    class Looking(server.Client):
        """Notes who asks for the health of a server."""

        async def call(self, method, path, body=None):
            if path == "/health":
                looks.append(self)
            return await super().call(method, path, body)

    monkeypatch.setattr(server, "Client", Looking)
    engine = opened()
    engine._program = [sys.executable, "-S", "-c", SLOWLY, str(FAKE)]
    assert len(engine.generate(REQUESTS)) == len(REQUESTS)
    assert len(looks) > 4
    assert len(set(looks)) == 1


MEETING = """
import os, pathlib, sys, time
place, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
(place / str(os.getpid())).touch()
while len(list(place.iterdir())) < count:
    time.sleep(0.05)
os.execv(sys.executable, [sys.executable, *sys.argv[3:]])
"""
"""A program that begins when as many of it have been started as are to meet in a folder."""


@pytest.fixture
def three(opened, tmp_path) -> Callable[..., VllmServers]:
    """Opens an engine with three servers, of which none comes up before all are started."""
    place = tmp_path / "place"
    place.mkdir()

    def open_engine(**arguments) -> VllmServers:
        engine = opened(replicas=3, start_s=30, **arguments)
        engine._program = [sys.executable, "-S", "-c", MEETING, str(place), "3", str(FAKE)]
        return engine

    return open_engine


def memory(faults: Path) -> list[int]:
    """Bytes for keys and values that each server was started with, in the order of their starts."""
    given = [psutil.Process(server).cmdline() for server, _ in pids(faults)]
    return [int(line[line.index("--kv-cache-memory-bytes") + 1]) for line in given]


def test_the_servers_of_all_models_share_the_memory_for_keys_and_values(opened, faults):
    policy, reward = opened(replicas=2, cache_gib=0.25), opened(cache_gib=0.25)
    policy.generate(REQUESTS)
    reward.generate(REQUESTS)
    each = 2**28 // 3
    assert memory(faults) == [each, each, 2**28 - 2 * each]


def test_servers_that_would_need_too_much_are_refused_before_any_starts(opened, faults):
    with pytest.raises(
        UserError, match=r"cache_gib = 0\.002: it needs 0\.003 GiB, so that each model, and each"
    ):
        opened(replicas=3, cache_gib=0.002)
    opened(replicas=2, cache_gib=0.002)
    with pytest.raises(UserError, match=r"the 2 engines of this process need 0\.003 GiB"):
        opened(replicas=2, cache_gib=0.002)
    assert not pids(faults)
    assert opened(cache_gib=0.002, context=64).generate(REQUESTS), "shorter prompts need less"


def test_the_servers_of_a_model_start_side_by_side(opened, three, faults):
    found = three(restarts=0).generate(REQUESTS)
    assert len(pids(faults)) == 3
    assert found == opened().generate(REQUESTS)


def test_servers_that_are_lost_while_all_start_are_counted_and_started_again(opened, three, faults, capfd):
    expected = opened().generate(REQUESTS)
    for number in range(2):
        (faults / f"{number}-unnamed").touch()
    engine = three(restarts=2)
    assert engine.generate(REQUESTS) == expected
    told = capfd.readouterr().err
    assert told.count("engine: it is brought up again, because a server of vLLM was lost: ") == 2
    assert told.count("/update_weight_version: HTTP 500: no name") == 2
    started = pids(faults)[1:]
    assert len(started) == 5
    wait_until(lambda: sum(map(gone, started)) == 2)
    (faults / "1-die").touch()
    assert engine.generate(REQUESTS) == expected, "the answers have set the count back"


def test_when_too_many_are_lost_while_all_start_those_that_came_up_are_ended(three, faults):
    for number in range(2):
        (faults / f"{number}-unnamed").touch()
    with pytest.raises(MachineError, match=r"(?s)engine\.restarts = 1: .*HTTP 500: no name.*the fake starts"):
        three(restarts=1).generate(REQUESTS)
    assert len(pids(faults)) >= 2
    wait_until(lambda: all(map(gone, pids(faults))))


def test_what_answers_at_the_port_of_a_server_that_has_ended_is_not_given_weights(tmp_path):
    with listening(tmp_path) as (address, fake):
        taken = SimpleNamespace(
            where=lambda: address,
            ended=True,
            gone=False,
            note_end=lambda: None,
            kill=lambda: None,
            last_words=lambda: "[Errno 98] error while attempting to bind: address already in use",
        )
        own = server.Server(None, lambda folder: taken, tmp_path, Limits(5, 1), 5)
        with pytest.raises(LostError, match="another program has taken a port"):
            asyncio.run(own.bring_up(server.Weights(tmp_path, "own")))
        assert fake.version == "default"


def test_what_is_started_ahead_reads_no_module_afterwards_also_where_a_server_is_lost(opened, faults):
    """With `train.staleness` 1 a thread samples, and the module is trained meanwhile."""
    model = cases.qwen2()
    engine, reads = opened(model), []
    engine.sync(3)
    engine.ensure_started()
    assert len(pids(faults)) == 1
    model.register_forward_pre_hook(lambda *_: reads.append("forward"))
    model.register_state_dict_pre_hook(lambda *_: reads.append("state"))
    engine.ensure_started()
    expected = engine.generate(REQUESTS)
    (faults / "1-die").touch()
    assert engine.generate(REQUESTS) == expected
    assert {reply.version for reply in expected} == {3}
    assert len(pids(faults)) == 2
    assert reads == []
