"""Servers that a real Ray cluster places: on several nodes, and whatever becomes of them, the same answers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import engine_cases as cases
import psutil
import pytest
from fake_vllm import FAULTS
from ray_cases import NO_RAY, Nodes, ray_missing
from served_cases import FAKE, REQUESTS, gone, pids, wait_until

from rlanything.core.errors import UserError
from rlanything.engines.vllm import support
from rlanything.engines.vllm.instance import Ask
from rlanything.engines.vllm.served.engine import VllmServers
from rlanything.engines.vllm.served.fleet import divide
from rlanything.engines.vllm.served.placed import Placed
from rlanything.engines.vllm.served.wire import LostError

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(ray_missing, reason=NO_RAY),
    pytest.mark.xdist_group("ray"),
]
ASKED = [replace(request, session=f"{number}") for number, request in enumerate(REQUESTS)]
"""With so many sessions both of two servers are asked."""
SLOWLY = 60.0
"""Seconds in which the processes of a busy machine end."""


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    """The folder of faults, which the nodes know from their start."""
    folder = tmp_path_factory.mktemp("placed") / "faults"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FAULTS, str(folder))
        yield folder


@pytest.fixture(scope="module")
def nodes(faults):
    with Nodes() as found:
        found.connect()
        yield found


@pytest.fixture
def opened(nodes, monkeypatch, tmp_path):
    monkeypatch.setattr(support, "version", lambda: support.VERSION)
    engines = []

    def open_engine(**arguments) -> VllmServers:
        given = {"tolerance": 1e9, "request_s": 60, "start_s": 120, "folder": str(tmp_path), **arguments}
        given.setdefault("addresses", [f"ray://{nodes.address}"])
        engines.append(VllmServers(cases.qwen2(), cases.tokenizer(), **given))
        engines[-1]._program = [sys.executable, str(FAKE)]
        return engines[-1]

    yield open_engine
    for engine in engines:
        engine.close()


@pytest.mark.slow
def test_servers_on_several_nodes_answer_as_one_here_and_are_replaced_when_they_or_their_nodes_are_lost(
    opened, nodes, faults, capfd
):
    alone = opened(addresses=[])
    expected = alone.generate(ASKED)
    alone.close()
    before = len(pids(faults))
    engine = opened(replicas=2, restarts=3)
    assert engine.generate(ASKED) == expected
    first = pids(faults)[before:]
    assert len(first) == 2
    assert all(divide([Ask((), 1, (), {}, session=one.session) for one in ASKED], 2))
    raylets = {ancestor(group[0], "raylet") for group in first}
    assert len(raylets) == 2, "the servers are not spread over the nodes"
    assert all(server.address.startswith("http://") for server in engine._instance._servers)

    os.kill(first[0][0], signal.SIGKILL)
    assert engine.generate(ASKED) == expected
    told = capfd.readouterr().err
    assert "a server of vLLM was lost" in told
    assert "| the fake starts" in told, "the end of its log is not shown"
    wait_until(lambda: gone(first[0]), SLOWLY)

    nodes.add()
    running = [group for group in pids(faults)[before:] if not gone(group)]
    assert len(running) == 2
    nodes.kill_one()
    wait_until(lambda: any(map(gone, running)), SLOWLY)  # until then it may still answer
    assert engine.generate(ASKED) == expected
    assert "Ray: " in capfd.readouterr().err
    folders = [folder_of(group[0]) for group in pids(faults)[before:] if not gone(group)]
    assert len(folders) == 2
    engine.close()
    wait_until(lambda: all(gone(group) for group in pids(faults)), SLOWLY)
    wait_until(lambda: not any(folder.exists() for folder in folders), SLOWLY)


def ancestor(pid: int, name: str) -> int:
    """The process above one that has a name."""
    return next(parent.pid for parent in psutil.Process(pid).parents() if parent.name() == name)


def folder_of(server: int) -> Path:
    """Where a server has its log and its sockets, on its node."""
    return Path(psutil.Process(server).environ()["TMPDIR"])


@pytest.mark.slow
def test_a_cluster_without_room_says_what_is_asked_for(nodes):
    placed = Placed(nodes.address, "cuda", lambda actor: actor.ask.remote("ended"), 2.0)
    with pytest.raises(
        LostError, match=r"within 2 s \(it asks for 1 cpus, 1 gpus; free in the cluster: .*, 0 gpus"
    ):
        wait_until(lambda: placed.where() != "")
    placed.kill()


@pytest.mark.slow
def test_a_server_that_cannot_start_ends_the_run_with_its_words(opened):
    engine = opened()
    engine._program = [sys.executable, "-S", "-c", "print('no such kernel'); raise SystemExit(3)"]
    with pytest.raises(UserError, match=r"(?s)cannot run this model here; .*no such kernel.*exit code 3"):
        engine.generate(ASKED)


ASKING = """
import sys
from functools import partial
from pathlib import Path
from served_cases import ask_and_stay
ask_and_stay(partial(print, flush=True), Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
"""
"""A program that trains, as far as Ray and the servers know."""


@pytest.fixture
def asking(nodes, faults, tmp_path) -> Iterator[subprocess.Popen[str]]:
    """A program that has asked a server which the cluster placed. Its weights lie in `tmp_path`."""
    words = [sys.executable, "-c", ASKING, str(faults), str(tmp_path), f"ray://{nodes.address}"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_on_a_node_when_the_process_that_asked_is_killed(asking, faults, tmp_path, how):
    group = pids(faults)[-1]
    folder = folder_of(group[0])
    above = [parent.pid for parent in psutil.Process(group[0]).parents()]
    between = above[: above.index(ancestor(group[0], "raylet"))]
    assert not gone(group)
    assert all(list(place.iterdir()) for place in (folder, tmp_path))
    asking.send_signal(how)
    asking.wait()
    try:
        wait_until(lambda: gone([*group, *between]), SLOWLY)
    except AssertionError:
        os.killpg(os.getpgid(group[0]), signal.SIGKILL)
        raise
    wait_until(lambda: not folder.exists(), SLOWLY)
    wait_until(lambda: not list(tmp_path.iterdir()), SLOWLY)
