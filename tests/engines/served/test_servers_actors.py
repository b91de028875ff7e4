"""Servers that actors start, with actors in this process: what happens when a server, its actor or its node is lost.

`test_servers_placed.py` has a real cluster.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from types import SimpleNamespace

import psutil
import pytest
from served_cases import FAKE, REQUESTS, gone, pids, wait_until

from rlanything.core.errors import MachineError, UserError
from rlanything.engines.vllm.served.placed import Keeper
from rlanything.engines.vllm.served.process import SOCKET, Process

ASKED = [replace(request, session=f"{number}") for number, request in enumerate(REQUESTS)]
"""With so many sessions both of two servers are asked."""


class Died(Exception):
    """What Ray raises for an actor that is gone."""


class Late(Exception):
    """What Ray raises for an answer that does not come."""


class Actor:
    """An actor in this process."""

    def __init__(self, ray: Ray) -> None:
        self.keeper, self.dead = Keeper(), False
        self.start, self.ask = (SimpleNamespace(remote=self._later(name, ray)) for name in ("start", "ask"))

    def _later(self, name, ray):
        def call(*arguments):
            if ray.full:
                raise Late
            if self.dead:
                raise Died("The actor died:\nits node has died")
            return getattr(self.keeper, name)(*arguments)

        return lambda *arguments: lambda: call(*arguments)


class Ray:
    """What the engine uses of the module `ray`."""

    exceptions = SimpleNamespace(GetTimeoutError=Late, RayError=Died)
    util = SimpleNamespace(get_node_ip_address=lambda: "127.0.0.1")

    def __init__(self) -> None:
        self.actors: list[Actor] = []
        self.asked_for: list[dict] = []
        self.full = False

    def is_initialized(self) -> bool:
        return True

    def remote(self, _kind):
        def begin():
            self.actors.append(Actor(self))
            return self.actors[-1]

        def options(**given):
            self.asked_for.append(given)
            return SimpleNamespace(remote=begin)

        return SimpleNamespace(options=options)

    def get(self, reference, timeout):
        return reference()

    def kill(self, actor, no_restart):
        assert no_restart
        self.lose(actor)

    def lose(self, actor) -> None:
        """The actor's process ends. It kills its children first, and nothing below them, as Ray's do."""
        actor.dead = True
        if actor.keeper._process is not None:
            for child in (actor.keeper._process._keeper, actor.keeper._remover):
                child.kill()
                child.communicate()  # closes the pipe

    def available_resources(self):
        return {"CPU": 3.0}


@pytest.fixture
def ray(monkeypatch) -> Ray:
    found = Ray()
    monkeypatch.setitem(sys.modules, "ray", found)
    return found


@pytest.fixture
def placed(opened, ray, tmp_path):
    """Opens an engine whose servers are placed by a cluster."""
    return lambda **more: opened(addresses=["ray://head:6379"], folder=str(tmp_path), **more)


def test_servers_that_are_placed_answer_as_one_here_and_are_replaced_when_they_or_their_nodes_are_lost(
    opened, placed, ray, faults, capfd
):
    expected = opened().generate(ASKED)
    engine = placed(replicas=2)
    assert engine.generate(ASKED) == expected
    first = pids(faults)[1:]
    assert len(first) == len(ray.actors) == 2
    for each in ray.asked_for:
        assert (each["num_cpus"], each["num_gpus"], each["max_restarts"], each["max_task_retries"]) == (
            1,
            0,
            0,
            0,
        )
    assert all(server.address.startswith("http://127.0.0.1:") for server in engine._instance._servers)

    os.kill(first[0][0], signal.SIGKILL)
    assert engine.generate(ASKED) == expected
    told = capfd.readouterr().err
    assert "requests are asked again, because a server of vLLM was lost" in told
    assert "| the fake starts" in told, "the end of its log is not shown"
    assert "| the server was killed by SIGKILL" in told

    left = [group for group in pids(faults)[1:] if not gone(group)]
    ray.lose(next(actor for actor in ray.actors if not actor.dead))
    wait_until(lambda: any(gone(group) for group in left))  # a server that still answers is not lost
    assert engine.generate(ASKED) == expected
    assert "| Ray: Died: The actor died: its node has died" in capfd.readouterr().err
    assert len(ray.actors) == 4
    engine.close()
    assert all(actor.dead for actor in ray.actors)
    wait_until(lambda: all(gone(group) for group in pids(faults)[1:]))
    folders = [actor.keeper._process._log.parent for actor in ray.actors]
    wait_until(lambda: not any(folder.exists() for folder in folders))


@pytest.mark.parametrize("killed", ["child of Ray's worker", "keeper", "Ray's worker"])
def test_a_server_of_a_worker_of_ray_ends_whichever_process_above_it_is_killed(faults, tmp_path, killed):
    words = ["--model", str(tmp_path), "--uds", str(tmp_path / SOCKET)]
    process = Process([sys.executable, str(FAKE)], words, dict(os.environ), tmp_path, of_ray=True)
    try:
        wait_until(lambda: bool(pids(faults)))
        (group,) = pids(faults)
        keeper = psutil.Process(group[0]).ppid()
        assert psutil.Process(keeper).ppid() == process._keeper.pid
        if killed == "keeper":
            os.kill(keeper, signal.SIGKILL)
        elif killed == "child of Ray's worker":
            process._keeper.kill()
        else:
            process._keeper.stdin.close()
        wait_until(lambda: gone([*group, keeper]))
        wait_until(lambda: process.ended)
    finally:
        process.kill()


def test_a_cluster_without_room_says_what_is_asked_for(placed, ray):
    ray.full = True
    engine = placed(restarts=0, start_s=2)
    with pytest.raises(
        MachineError,
        match=r"no node had room for a server within 2 s \(it asks for 1 cpus; free .*: 3 cpus, 0 gpus\)",
    ):
        engine.generate(REQUESTS)


def test_a_server_that_cannot_start_ends_the_run_with_its_words(placed, ray):
    engine = placed()
    engine._program = [sys.executable, "-S", "-c", "print('no such kernel'); raise SystemExit(3)"]
    with pytest.raises(UserError, match=r"(?s)cannot run this model here; .*no such kernel.*exit code 3"):
        engine.generate(REQUESTS)


STRANGER = """
import os, pathlib, socket, subprocess, sys
count, left = pathlib.Path(sys.argv[1]), sys.argv[2:]
if int(count.read_text()) == 0:
    os.execv(sys.executable, [sys.executable, *left])
count.write_text(str(int(count.read_text()) - 1))
with socket.create_server((left[left.index("--host") + 1], int(left[left.index("--port") + 1]))):
    raise SystemExit(subprocess.run([sys.executable, *left]).returncode)
"""
"""A server whose port another program takes before it does. A file says how often that happens."""


@pytest.fixture
def robbed(placed, tmp_path):
    """Opens an engine with a server that is placed, and loses its port to another program so many times."""

    def open_engine(times: int, **arguments):
        (tmp_path / "times").write_text(f"{times}")
        engine = placed(**arguments)
        engine._program = [sys.executable, "-S", "-c", STRANGER, str(tmp_path / "times"), str(FAKE)]
        return engine

    return open_engine


def test_a_server_whose_port_was_taken_meanwhile_is_placed_again(opened, robbed, ray, capfd):
    expected = opened().generate(REQUESTS)
    assert robbed(2, restarts=2).generate(REQUESTS) == expected
    assert len(ray.actors) == 3
    told = capfd.readouterr().err
    assert (
        told.count("is brought up again, because a server of vLLM was lost: another program has taken a port")
        == 2
    )
    assert "address already in use" in told


def test_a_server_whose_port_is_taken_every_time_ends_the_run(robbed, ray):
    with pytest.raises(MachineError, match=r"engine\.restarts = 1: .*another program has taken a port"):
        robbed(9, restarts=1).generate(REQUESTS)
    assert len(ray.actors) == 2


def test_ray_must_be_installed(placed, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        UserError, match=r"ray://head:6379: Ray is not installed: pip install 'rlanything\[ray\]'"
    ):
        placed().generate(REQUESTS)
