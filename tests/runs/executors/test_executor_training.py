"""A whole training whose environments run on workers that are killed, byte for byte the training without workers."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import golden_cases as golden
import psutil
import pytest
from ray_cases import NO_RAY, Nodes, ray_missing

from rlanything.runs.layout import Layout

ARM = "full"
RECORDS = (".jsonl", ".gz", ".safetensors")
MOST = 4
"""How many workers are killed. On a busy machine one may need longer to start than the next kill waits."""
pytestmark = [pytest.mark.long, pytest.mark.integration]


def trained(root: Path, **executor: object) -> dict[str, bytes]:
    """The records and weights of a training."""
    changes = {"executor": executor} if executor else {}
    golden.run(golden.project(root), ARM, **changes)
    run = Layout(root).run(ARM, 0)
    files = [path for path in run.rglob("*") if path.suffix in RECORDS]
    assert len(files) > 10
    return {path.relative_to(run).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> dict[str, bytes]:
    return trained(tmp_path_factory.mktemp("alone"))


@contextmanager
def killing(is_worker: Callable[[psutil.Process], bool], seconds: float) -> Iterator[list[int]]:
    """Every few seconds a worker is killed, until `MOST` are. All of them descend from this process."""
    rng, killed, over = random.Random(11), [], threading.Event()

    def kill() -> None:
        while len(killed) < MOST and not over.wait(rng.uniform(0.5, 1.5) * seconds):
            with suppress(psutil.Error):
                found = [p for p in psutil.Process().children(recursive=True) if _is(p, is_worker)]
                if found:
                    victim = rng.choice(found)
                    victim.kill()
                    killed.append(victim.pid)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def _is(process: psutil.Process, is_worker: Callable[[psutil.Process], bool]) -> bool:
    """Whether a process that still runs is a worker. One that has ended cannot be asked."""
    try:
        return is_worker(process)
    except psutil.Error:
        return False


def test_workers_in_processes_that_are_killed_now_and_then(alone, tmp_path):
    def is_worker(process: psutil.Process) -> bool:
        return "multiprocessing.spawn" in " ".join(process.cmdline())

    with killing(is_worker, 1.0) as killed:
        assert trained(tmp_path, form="processes", workers=2, bundle=4, attempts=20) == alone
    assert killed, "no worker was killed"


@pytest.mark.skipif(ray_missing, reason=NO_RAY)
@pytest.mark.xdist_group("ray")
def test_workers_and_a_node_of_ray_that_are_killed(alone, tmp_path):
    def is_worker(process: psutil.Process) -> bool:
        return process.name().startswith("ray::Actor")

    gone = threading.Event()

    def kill_node() -> None:
        while not gone.is_set() and not list(tmp_path.glob(".rla/live/*/full/seed-0/iterations/0000")):
            gone.wait(0.05)
        if not gone.is_set():
            nodes.kill_one()
            gone.set()

    with Nodes(3) as nodes, killing(is_worker, 2.0) as killed:
        nodes.connect()
        killer = threading.Thread(target=kill_node)
        killer.start()
        found = trained(tmp_path, form="ray", address=nodes.address, workers=2, bundle=4, attempts=20)
        assert gone.is_set(), "the training was over before a node was killed"
        killer.join()
    assert found == alone
    assert killed, "no worker was killed"
