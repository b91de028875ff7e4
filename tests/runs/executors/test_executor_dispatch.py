"""Who gets which work, with workers that live in this process and answer when the test says."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

import pytest
from executor_cases import CODE, settings
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from rlanything.core.errors import ConfigError, MachineError
from rlanything.core.types import Task
from rlanything.loop.episodes import Move
from rlanything.runs.executors import crew
from rlanything.runs.executors.crew import Crew, Job
from rlanything.runs.executors.dispatcher import Dispatcher, _allowed
from rlanything.runs.executors.pool import LostError
from rlanything.runs.executors.worker import Greeting

GREETED = (None, Greeting(1, "here", "", CODE))


class Hand:
    """A worker that doubles numbers. `fate` says what becomes of an order: ok, lost, or silent."""

    def __init__(self, pool):
        self.greeting, self.pool, self.orders, self.killed = None, pool, [], False
        self.answer = GREETED

    def ask(self, order):
        assert self.answer is None, "an order before the one before was answered"
        self.orders.append(order)
        self.answer = self.pool.fate(self, order)

    def receive(self):
        answer, self.answer = self.answer, None
        if answer == "lost":
            raise LostError("the machine burned")
        return answer

    def kill(self):
        self.killed = True

    def last_words(self):
        return "smoke\nfire"


class Pool:
    def __init__(self, fate=None):
        self.hands, self.most_at_once = [], 0
        self.fate = fate or doubled

    def start(self):
        self.hands.append(Hand(self))
        return self.hands[-1]

    def wait(self, hands, timeout_s):
        self.most_at_once = max(
            self.most_at_once, sum(bool(h.orders) and h.answer is not None for h in hands)
        )
        return [hand for hand in hands if hand.answer is not None and hand.answer != "silent"]

    def room(self):
        return "no room"


def doubled(_hand, order):
    return None, [2 * item for item in order.part]


def dispatcher(pool, said=None, **changed):
    config = settings(**changed)
    workers = Crew(pool, config, CODE, (said if said is not None else []).append)
    workers.start()
    return Dispatcher(workers, config)


@hypothesis_settings(deadline=None)
@given(st.integers(0, 30), st.integers(1, 5), st.integers(1, 7), st.integers(0, 99))
def test_results_are_in_order_whatever_the_workers_bundles_and_losses(count, workers, bundle, seed):
    random = Random(seed)

    def fate(_hand, order):
        return "lost" if random.random() < 0.3 else doubled(_hand, order)

    pool = Pool(fate)
    given_out = dispatcher(pool, workers=workers, bundle=bundle, attempts=100)
    assert given_out.examine(range(count)) == [2 * k for k in range(count)]
    assert pool.most_at_once <= workers
    assert all(len(order.part) <= bundle for hand in pool.hands for order in hand.orders)
    assert sum(not hand.killed for hand in pool.hands) == workers


def test_work_that_always_kills_its_worker_ends_the_run_with_the_cause_and_the_log():
    pool = Pool(lambda hand, order: "lost" if 3 in order.part else doubled(hand, order))
    said = []
    with pytest.raises(MachineError, match=r"item 3\) was lost 4 times(?s:.)*machine burned(?s:.)*\| fire"):
        dispatcher(pool, said, attempts=4).examine(range(6))
    assert all("a worker was lost, its work is done again: the machine burned" in text for text in said)
    assert len(said) == 4


class Full(Pool):
    """Has room for one worker."""

    def start(self):
        hand = super().start()
        if len(self.hands) > 1:
            hand.answer = "lost"
        return hand


def test_a_worker_without_room_is_no_lost_work_and_is_tried_again_later_and_later(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(crew, "time", SimpleNamespace(monotonic=lambda: now[0]))
    pool, said = Full(), []
    given_out = dispatcher(pool, said, workers=2, attempts=2)
    for now[0] in (0.0, 4.0, 6.0, 7.0, 15.0, 17.0, 18.0):
        assert given_out.examine(range(6)) == [2 * k for k in range(6)]
    assert len(pool.hands) == 4
    for text, wait in zip(said, (5, 10, 20), strict=True):
        assert text.startswith(
            f"executor: a worker has not started; 1 of 2 work, and another one is tried in {wait} s (no room): the "
            "machine burned"
        )


def test_workers_without_room_are_tried_for_as_long_as_the_run_takes(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(crew, "time", SimpleNamespace(monotonic=lambda: now[0]))
    pool, said = Full(), []
    given_out = dispatcher(pool, said, workers=64)
    while len(said) < 1200:
        now[0] += 1000
        assert given_out.examine(range(2)) == [0, 2]
    assert "another one is tried in 600 s" in said[-1]


def test_all_missing_workers_are_started_where_none_is_left():
    pool = Full(lambda hand, order: "lost" if hand is pool.hands[0] else doubled(hand, order))
    with pytest.raises(MachineError, match=r"workers in a row did not start \(no room\)"):
        dispatcher(pool, workers=2, attempts=3).examine(range(6))


def test_workers_that_never_start_end_the_run_with_the_cause():
    class Broken(Pool):
        def start(self):
            hand = super().start()
            hand.answer = "lost"
            return hand

    with pytest.raises(MachineError, match=r"3 workers in a row did not start \(no room\).*machine burned"):
        dispatcher(Broken(), attempts=3)


def test_a_worker_with_other_code_is_refused():
    pool = Pool()
    config = settings()
    with pytest.raises(ConfigError, match=r"the worker 1 here has another version"):
        Crew(pool, config, "other code", print).start()


def test_what_an_order_raises_is_raised():
    pool = Pool(lambda hand, order: (ConfigError("no such game"), None))
    with pytest.raises(ConfigError, match="no such game"):
        dispatcher(pool).examine([1])


def test_a_worker_whose_order_raised_can_be_given_the_next_one():
    """Whoever samples ahead may meet an error while the process goes on with other work."""
    raised = []

    def fate(hand, order):
        if raised:
            return doubled(hand, order)
        raised.append(order)
        return ConfigError("no such game"), None

    pool, said = Pool(fate), []
    given_out = dispatcher(pool, said, workers=1, patience_s=0.02, timeout_s=0.2)
    with pytest.raises(ConfigError, match="no such game"):
        given_out.examine([1])
    assert given_out.examine([2]) == [4]
    assert len(pool.hands) == 1
    assert not said


def test_a_missing_result_is_an_error():
    with pytest.raises(ValueError, match="1 results for 2 items"):
        dispatcher(Pool(lambda hand, order: (None, [1])), bundle=2).examine([1, 2])


def test_a_silent_worker_holds_nobody_up_and_its_late_answer_changes_nothing():
    def fate(hand, order):
        first = hand is hand.pool.hands[0] and len(hand.orders) == 1
        return "silent" if first else doubled(hand, order)

    pool = Pool(fate)
    given_out = dispatcher(pool, patience_s=0.05, timeout_s=70)
    assert given_out.examine(range(8)) == [2 * k for k in range(8)]
    slow = pool.hands[0]
    assert len(slow.orders) == 1
    slow.answer = (None, ["late"])  # of the work before
    assert given_out.examine(range(100, 108)) == [2 * k for k in range(100, 108)]
    assert len(slow.orders) > 1
    assert len(pool.hands) == 2


def test_a_worker_that_does_not_answer_in_time_is_ended_and_replaced(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(crew, "time", SimpleNamespace(monotonic=lambda: now[0]))

    class Waiting(Pool):
        def wait(self, hands, timeout_s):
            now[0] += timeout_s
            return super().wait(hands, timeout_s)

    def fate(hand, order):
        return "silent" if hand in hand.pool.hands[:2] else doubled(hand, order)

    pool, said = Waiting(fate), []
    given_out = dispatcher(pool, said, patience_s=0.02, timeout_s=0.3)
    assert given_out.examine(range(4)) == [0, 2, 4, 6]
    assert [hand.killed for hand in pool.hands] == [True, True, False, False]
    assert all("it has not answered for 0.3 s, and was ended" in text for text in said)
    assert len(said) == 2


@pytest.mark.parametrize(("workers", "orders"), [(3, 1), (6, 2)])
def test_workers_that_end_while_they_are_idle_are_no_losses_of_the_work_that_they_are_given(workers, orders):
    """A node that dies while models learn takes all of its workers along."""
    gone: set[Hand] = set()
    pool = Pool(lambda hand, order: "lost" if hand in gone else doubled(hand, order))
    given_out = dispatcher(pool, workers=workers, attempts=2)
    given_out.examine(range(3 * workers))  # all of them have greeted
    gone |= set(pool.hands)
    assert given_out.examine(range(orders)) == [2 * k for k in range(orders)]


def move(actions: int, timeout_s: float = 10.0, *, last: bool = False) -> Move:
    return Move(f"e{actions}", Task("levels", "x", {}), 0, ("go",) * actions, "", timeout_s, last=last)


@pytest.mark.parametrize(
    ("moves", "opened", "allowed"),
    [
        ([move(5)], True, 0),
        ([move(5)], False, 50),
        ([move(0)] * 4, False, 30),
        ([move(3), move(7)], True, 10),
        ([move(3, last=True)], True, 20),  # the move, the verdicts, and the one on the episode
    ],
)
def test_a_job_may_take_as_long_as_all_of_its_calls(moves, opened, allowed):
    """Else workers that are well are ended: a bundle of episodes that hang, or one that is played from its start."""
    job = Job("play", tuple(range(len(moves))), tuple(moves), ())
    assert _allowed(job, opened) == allowed
    assert _allowed(Job("examine", (0,), (object(),), ()), opened=False) == 0
