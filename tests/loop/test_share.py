"""The processes of a run divide its rollouts, votes and rewrites; what each of them gets is what one gets alone."""

from __future__ import annotations

import os
import pickle
import socket
import time
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest
import torch.distributed as processes
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import ACTIONS, Family, chat_model, prompts, read, rollout_worker, task
from torch.multiprocessing import ProcessRaisedException, start_processes

from rlanything.buffer import TaskBuffer
from rlanything.config import AdaptationConfig, JudgeConfig
from rlanything.core.errors import MachineError
from rlanything.core.types import Direction, Status
from rlanything.loop.adapt import Adapter
from rlanything.loop.rollout import Assignment, Sampling
from rlanything.loop.share import agree, announced, shared, together
from rlanything.rewards.step_votes.judge import Judge

SAMPLING = Sampling(run_seed=3, phase="act", iteration=0, temperature=0.8, max_steps=4)
BROKEN = 3
"""The level whose environment raises."""
UNSAYABLE = 9
"""The level at which the policy's engine fails."""


def by_seed(request):
    if f"reach level {UNSAYABLE}" in read(request.prompt_ids):
        raise ValueError("the model diverged")
    return ACTIONS[request.seed % 2]


def opinion(request):
    return ("good", "bad", "hm")[request.seed % 3]


def level(request):
    return f"level {request.seed % 100}"


def everything(levels):
    """Trajectories and judgements of two tries of each level, rewrites, and how many samples this process drew."""
    faults = {BROKEN: {"fault": "raise in step"}}
    work = [Assignment(k, task(level, **faults.get(level, {})), 2) for k, level in enumerate(levels)]
    acting, judge = (
        rollout_worker(by_seed),
        Judge(chat_model(opinion), prompts(), JudgeConfig(m=3, max_tokens=8)),
    )
    trajectories = acting.roll_out(work, SAMPLING)
    judgements = judge.judge(trajectories, 3, 0)
    adapter = Adapter(
        Family(), chat_model(level), prompts(), AdaptationConfig(critic="extractive", max_tokens=16), 60.0
    )
    wanted = [(k, Direction.HARDER, 1.0, "") for k in range(len(levels))]
    rewrites = adapter.propose(wanted, TaskBuffer.start([a.task for a in work]), 3, 0) if wanted else []
    engines = [x.engine for x in (acting.policy, judge.reward, adapter.chat_model)]
    return (trajectories, judgements, rewrites), sum(len(engine.asked) for engine in engines)


def one_of_them(rank, world, folder, levels):
    """What a process of a launch does."""
    processes.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world)
    (folder / f"{rank}").write_bytes(pickle.dumps(everything(levels)))
    processes.destroy_process_group()


def launched(world, folder, levels):
    """What each of `world` real processes got."""
    folder.mkdir()
    start_processes(one_of_them, (world, folder, levels), nprocs=world, start_method="fork")
    return [pickle.loads((folder / f"{rank}").read_bytes()) for rank in range(world)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root: Path = tmp_path_factory.mktemp("launches")
    return (root / f"{k}" for k in count())


@pytest.mark.long
@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(0, 8), max_size=7, unique=True), st.sampled_from([2, 4]))
def test_processes_that_divide_rollouts_votes_and_rewrites_all_get_what_one_gets_alone(
    folders, levels, world
):
    alone, drawn = everything(levels)
    assert [t.status is Status.ENV_ERROR for t in alone[0]] == [n == BROKEN for n in levels for _ in range(2)]
    together = launched(world, next(folders), levels)
    assert all(got == alone for got, _ in together)
    assert sum(count for _, count in together) == drawn


def test_an_error_in_one_process_ends_all_of_them(folders):
    with pytest.raises(ProcessRaisedException, match="the model diverged"):
        launched(2, next(folders), [0, UNSAYABLE])


def late(rank, world, folder):
    """The second process comes too late. What the first one says goes to a file."""
    processes.init_process_group(
        "gloo",
        init_method=f"file://{folder}/store",
        rank=rank,
        world_size=world,
        timeout=timedelta(seconds=3),
    )
    if rank:
        while not (folder / "told").exists():  # one that had ended would be called dead
            time.sleep(0.02)
        return
    with pytest.raises(MachineError) as told, together():
        shared([1, 2], list)
    (folder / "told").write_text(str(told.value))


def test_a_process_that_comes_too_late_is_not_called_dead(tmp_path):
    start_processes(late, (2, tmp_path), nprocs=2, start_method="fork")
    told = (tmp_path / "told").read_text()
    assert "did not come within train.timeout_s" in told
    assert "has ended" not in told


@given(st.lists(st.integers()))
def test_alone_the_work_is_done_in_order(work):
    assert shared(work, list) == work


def test_a_result_that_is_missing_is_an_error():
    with pytest.raises(ValueError, match="1 results for 2 items of work"):
        shared([1, 2], lambda part: list(part)[:1])


def at_a_place(rank, world, folder, places):
    """What a process of a launch does that has come to its place."""
    processes.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world)
    try:
        agree(places[rank])
        said = "agreed"
    except MachineError as error:
        said = str(error)
    (folder / f"{rank}").write_text(said)
    processes.destroy_process_group()


@pytest.mark.parametrize(
    ("iterations", "found"),
    [
        ((2, 2, 2), "agreed"),
        ((2, 0, 2), "rank 1 has iteration = 0; rank 0 has iteration = 2."),
        ((2, 2, 0), "rank 2 has iteration = 0; rank 0 has iteration = 2."),
    ],
)
def test_processes_that_are_not_at_the_same_place_end_and_say_which_one_differs(tmp_path, iterations, found):
    places = [{"run": "key/full/seed-0", "iteration": k} for k in iterations]
    start_processes(at_a_place, (3, tmp_path, places), nprocs=3, start_method="fork")
    assert all(found in (tmp_path / f"{rank}").read_text() for rank in range(3))


def test_one_process_agrees_with_itself():
    agree({"iteration": 1})


def unconnected(rank: int, port: int, folder: Path, silent: bool) -> None:
    """One of two processes that nothing has connected. silent: the first one tells nothing."""
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    said = []
    for name in ("one", "two"):
        try:
            said.append(
                str(announced(name, None if rank or silent else len(said) + 7, 1.0 if silent else 60.0))
            )
        except MachineError as error:
            said.append(str(error))
    (folder / f"{rank}").write_text("\n".join(said))
    while not (folder / "1").exists():  # the first process holds what connects them
        time.sleep(0.01)


@pytest.mark.parametrize("silent", [False, True])
def test_a_number_is_told_before_the_processes_are_connected_or_missed_in_time(tmp_path, silent):
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    start_processes(unconnected, (port, tmp_path, silent), nprocs=2, start_method="fork")
    for rank in range(2):
        said = (tmp_path / f"{rank}").read_text().splitlines()
        assert all("train.timeout_s" in text for text in said) if silent else said == ["7", "8"]
