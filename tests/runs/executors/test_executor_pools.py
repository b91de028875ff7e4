"""Real workers, in processes and on a real Ray cluster of several nodes: whatever becomes of them, the same bytes."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from contextlib import contextmanager, suppress

import pytest
from executor_cases import CODE, LAST_WORDS, FatedMaker, crew_of, fates, placed, rolled_out, settings
from ray_cases import NO_RAY, Nodes, ray_missing

from rlanything.core.errors import ConfigError, MachineError
from rlanything.runs.executors.processes import ProcessPool
from rlanything.runs.executors.worker import Order

RAY = pytest.param(
    "ray", marks=[pytest.mark.skipif(ray_missing, reason=NO_RAY), pytest.mark.xdist_group("ray")]
)
pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def nodes():
    with Nodes() as found:
        yield found


@pytest.fixture(params=["processes", RAY])
def pool_of(request):
    """Makes a pool of the form for workers that a maker makes."""
    if request.param == "ray":
        ray = request.getfixturevalue("nodes").connect()
        from rlanything.runs.executors.actors import ActorPool

        yield lambda make: ActorPool(ray, make, 1.0)
        return
    pools = []

    def made(make):
        pools.append(ProcessPool(make))
        return pools[-1]

    yield made
    for pool in pools:
        pool.close()


def test_workers_give_the_bytes_of_this_process(pool_of, tmp_path):
    with crew_of(pool_of(FatedMaker(tmp_path)), config := settings(bundle=2)) as crew:
        assert placed(crew, config) == rolled_out()


@pytest.mark.long
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_worker_that_is_killed_before_or_after_it_succeeded_costs_only_its_work(pool_of, tmp_path, when):
    fates(tmp_path, "fine", when, "fine", "fine", when)
    said: list[str] = []
    with crew_of(pool_of(FatedMaker(tmp_path)), config := settings(), said) as crew:
        assert placed(crew, config) == rolled_out()
    assert len(said) == 2
    assert all(f"| {LAST_WORDS}" in text for text in said), "the end of the log is not shown"


def test_a_worker_that_hangs_is_helped_and_then_ended(pool_of, tmp_path):
    fates(tmp_path, "hang")
    said: list[str] = []
    config = settings(patience_s=0.5, timeout_s=600.0)
    with crew_of(pool_of(FatedMaker(tmp_path)), config, said) as crew:
        start = time.monotonic()
        assert placed(crew, config) == rolled_out()
        assert time.monotonic() - start < 300
        assert said == []
        stuck = next(member for member in crew.members if not member.idle)
        stuck.since -= 600
        assert placed(crew, config) == rolled_out()
    assert "it has not answered for 600 s, and was ended" in said[0]


def test_a_long_order_to_a_worker_that_was_stopped_holds_nobody_up(tmp_path):
    pool = ProcessPool(FatedMaker(tmp_path))
    hand = pool.start()
    _, greeting = hand.receive()
    os.kill(greeting.pid, signal.SIGSTOP)
    asking = threading.Thread(target=hand.ask, args=(Order(0, "examine", ("x" * 10_000_000,)),), daemon=True)
    asking.start()
    asking.join(20)
    assert not asking.is_alive()
    assert pool.wait([hand], 0.2) == []
    os.kill(greeting.pid, signal.SIGCONT)
    error, _ = hand.receive()  # the whole order has come, and holds nothing that can be examined
    assert isinstance(error, TypeError)
    os.kill(greeting.pid, signal.SIGSTOP)
    hand.ask(Order(0, "examine", ("x" * 10_000_000,)))
    hand.kill()
    pool.close()


@pytest.mark.long
def test_workers_killed_at_random_moments_change_no_byte(pool_of, tmp_path):
    config = settings(workers=2, attempts=50)
    with crew_of(pool_of(FatedMaker(tmp_path, pause_s=0.02)), config) as crew, killing(crew, seed=5) as kills:
        while len(kills) < 3:
            assert placed(crew, config) == rolled_out()


@contextmanager
def killing(crew, seed):
    """Somebody kills a worker now and then. All nodes are on this machine."""
    rng, kills, over = random.Random(seed), [], threading.Event()

    def kill():
        while not over.wait(rng.uniform(0.1, 0.6)):
            pids = [member.hand.greeting.pid for member in list(crew.members) if member.hand.greeting]
            if pids:
                with suppress(ProcessLookupError):
                    os.kill(rng.choice(pids), signal.SIGKILL)
                    kills.append(time.monotonic())

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield kills
    finally:
        over.set()
        thread.join()


@pytest.mark.long
def test_workers_that_cannot_start_say_why(pool_of, tmp_path):
    with (
        pytest.raises(RuntimeError, match="the environment cannot run here") as caught,
        crew_of(pool_of(FatedMaker(tmp_path, unwilling="raise")), settings()),
    ):
        pass
    assert "in a worker that starts" in "".join(caught.value.__notes__)
    with (
        pytest.raises(MachineError, match="2 workers in a row did not start"),
        crew_of(pool_of(FatedMaker(tmp_path, unwilling="die")), settings(attempts=2)),
    ):
        pass


def test_workers_with_other_code_are_refused(pool_of, tmp_path):
    with (
        pytest.raises(ConfigError, match="another version of Python, of rlanything, or of the environment"),
        crew_of(pool_of(FatedMaker(tmp_path, code=f"not {CODE}")), settings()),
    ):
        pass


@pytest.mark.long
@pytest.mark.skipif(ray_missing, reason=NO_RAY)
@pytest.mark.xdist_group("ray")
def test_a_node_that_is_killed_costs_only_the_work_of_its_workers(nodes, tmp_path):
    from rlanything.runs.executors.actors import ActorPool

    config, said = settings(workers=2, attempts=50), []
    pool = ActorPool(nodes.connect(), FatedMaker(tmp_path, pause_s=0.05), 1.0)
    with crew_of(pool, config, said) as crew:
        deadline = time.monotonic() + 60
        while len(nodes_of(crew)) < 2 and time.monotonic() < deadline:
            list(crew.finished(0.5))
        assert len(nodes_of(crew)) == 2, "the workers are not spread over the nodes"
        killer = threading.Timer(0.5, nodes.kill_one)
        killer.start()
        start = time.monotonic()
        while not said or time.monotonic() - start < 1:
            assert placed(crew, config) == rolled_out()
            assert time.monotonic() - start < 120
        killer.join()
        nodes.add()
        while len(nodes_of(crew)) < 2:  # on the node that came
            assert placed(crew, config) == rolled_out()
            assert time.monotonic() - start < 180


def nodes_of(crew):
    return {member.hand.greeting.node for member in crew.members if member.hand.greeting}
