"""What is sampled beside an iteration: in a thread where workers run the environments, and with the same result."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from scripted import Family, World, task

from rlanything.core.errors import MachineError
from rlanything.core.timing import Timer
from rlanything.loop.batch import Batch, LoopState
from rlanything.loop.episodes import LocalHost
from rlanything.loop.share import hosted
from rlanything.runs.executors.ahead import PHASE, Ahead
from rlanything.runs.seedrun import SeedRun


class Elsewhere(LocalHost):
    """Stands for workers: a host that is not this process. It waits before each answer, and notes who asked."""

    def __init__(self) -> None:
        super().__init__(Family())
        self.pause = threading.Event()
        self.pause.set()
        self.asked: list[str] = []

    def play(self, moves):
        self.asked.append(threading.current_thread().name)
        assert self.pause.wait(60)
        return super().play(moves)


@contextmanager
def elsewhere() -> Iterator[Elsewhere]:
    host = Elsewhere()
    with hosted(host):
        yield host


def started() -> tuple[World, LoopState]:
    made = World({0: 4, 1: 0, 2: 2}, staleness=1)
    return made, made.start(*(task(k) for k in range(3)))


def ready(ahead: Ahead) -> Batch | None:
    ahead.wait()
    return ahead.take()


def test_a_thread_samples_the_batch_that_this_process_samples_without_one():
    made, state = started()
    with Ahead() as ahead:
        ahead.begin(lambda: made.loop.roll_out(state))
        alone = ready(ahead)
    with elsewhere() as host, Ahead() as ahead:
        ahead.begin(lambda: made.loop.roll_out(state))
        assert ready(ahead) == alone
        assert ahead.take() is None
    assert alone == made.loop.roll_out(state)
    assert set(host.asked) == {"ahead"}


def test_it_goes_on_beside_other_work_and_keeps_its_own_times():
    made, state = started()
    timer = Timer()
    with elsewhere() as host, Ahead() as ahead, timer.running():
        host.pause.clear()
        ahead.begin(lambda: made.loop.roll_out(state))
        with timer.phase("learn"):  # a phase of the thread would be inside this one if they shared a timer
            assert ahead.take() is None
            host.pause.set()
            lap = ahead.wait()
    assert lap is not None
    timer.add(PHASE, lap)
    assert {"learn", "learn/wait", "ahead", "ahead/rollout", "ahead/rollout/generate"} == set(
        timer.lap().phases
    )


def test_what_went_wrong_is_raised_where_the_batch_is_asked_for():
    def fails() -> Batch:
        raise MachineError("the machine burned")

    with elsewhere(), Ahead() as ahead:
        ahead.begin(fails)
        with pytest.raises(MachineError, match="the machine burned"):
            ahead.wait()


def test_a_run_that_ends_does_not_wait_for_the_rest_of_the_episodes():
    made, state = started()

    def interrupted(host: Elsewhere) -> None:
        with Ahead() as ahead:
            ahead.begin(lambda: made.loop.roll_out(state))
            while not host.asked:
                time.sleep(0.001)
            threading.Timer(0.05, host.pause.set).start()
            raise KeyboardInterrupt

    with elsewhere() as host:
        host.pause.clear()
        with pytest.raises(KeyboardInterrupt):
            interrupted(host)
    assert len(host.asked) == 1
    assert "ahead" not in {thread.name for thread in threading.enumerate()}


def test_the_thread_computes_with_one_thread_of_torch_as_the_main_one_does():
    found: list[int] = []
    made, state = started()
    before = torch.get_num_threads()

    def roll_out() -> Batch:
        found.append(torch.get_num_threads())
        return made.loop.roll_out(state)

    torch.set_num_threads(2)
    try:
        with elsewhere(), Ahead() as ahead:
            ahead.begin(roll_out)
            ahead.wait()
    finally:
        torch.set_num_threads(before)
    assert found == [1]


@pytest.mark.parametrize("taken", [False, True])
def test_what_is_saved_is_restored(taken):
    made, state = started()
    one, other = Ahead(), Ahead()
    one.begin(lambda: made.loop.roll_out(state))
    if taken:
        one.take()
    saved = one.saved(state)
    assert other.restore(saved, LoopState(0, state.buffer), made.loop.batches) == state
    assert other.take() == (None if taken else made.loop.roll_out(state))


def test_open_rewrites_and_slots_on_trial_are_restored():
    """Otherwise a run that goes on would choose a slot again whose rewrite was tried in its last iteration."""
    levels = iter(range(7, 90))
    wins = {0: 4, 1: 0, 2: 4, 3: 0, **dict.fromkeys(range(7, 90), 4)}
    made = World(wins, adapter=lambda _: f"level {next(levels)}", staleness=1)
    state = made.start(*(task(k) for k in range(4)))
    while not (state.tested and state.later):
        made.policy.sync(state.iteration)
        state = made.loop.collect(state).state
    ahead, known = Ahead(), replace(state, later=(), tested=())
    assert known != state
    assert ahead.restore(Ahead().saved(state), known, made.loop.batches) == state


@pytest.mark.parametrize(("iteration", "begun"), [(7, True), (8, False)])
def test_nothing_is_sampled_for_the_last_iteration_which_only_measures(iteration, begun):
    made, state = started()
    made.policy.engine.ensure_started = lambda: None
    with Ahead() as ahead:
        parts = SimpleNamespace(loop=made.loop, policy=SimpleNamespace(chat=made.policy))
        state = replace(state, iteration=iteration)
        made.policy.sync(iteration)
        run = SimpleNamespace(parts=parts, state=state, config=made.loop.config, ahead=ahead)
        assert run.config.train.iterations == 9
        SeedRun._judged(run)
        assert (ahead.take() is not None) is begun


@pytest.mark.parametrize("restored", [False, True])
def test_the_policys_weights_are_taken_in_this_thread_before_another_one_samples(restored):
    """Later they are trained. A run that goes on has the batch of its first iteration, so nothing was sampled yet."""
    made, state = started()
    engine = made.policy.engine
    batch = made.loop.roll_out(state) if restored else None
    generate, seen = engine.generate, []

    def noted(requests):
        seen.append((threading.current_thread().name, "generate"))
        return generate(requests)

    engine.generate = noted
    engine.ensure_started = lambda: seen.append((threading.current_thread().name, "start"))
    with elsewhere(), Ahead() as ahead:
        parts = SimpleNamespace(loop=made.loop, policy=SimpleNamespace(chat=made.policy))
        ahead.take = lambda: batch
        run = SimpleNamespace(parts=parts, state=state, config=made.loop.config, ahead=ahead)
        SeedRun._judged(run)
        ahead.wait()
    start = seen.index((threading.main_thread().name, "start"))
    assert ("ahead", "generate") in seen[start:]
    assert ("ahead", "generate") not in seen[:start]
    assert restored == (start == 0)


@pytest.mark.parametrize(("staleness", "held"), [(0, set()), (1, {"own", "next"})])
def test_the_pictures_of_a_batch_and_of_the_one_after_it_are_held(staleness, held):
    """The checkpoint of the iteration before holds the batch itself: it is needed if this iteration is damaged."""
    own, following = (SimpleNamespace(images=[name]) for name in ("own", "next"))
    config = SimpleNamespace(train=SimpleNamespace(staleness=staleness))
    run = SimpleNamespace(config=config, ahead=SimpleNamespace(trajectories=[following]))
    result = SimpleNamespace(groups=[SimpleNamespace(trajectories=[own])])
    assert SeedRun._held(run, result) == held
