"""Where environments run: a question asked again, or of another host, has the same answer."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import ACTIONS, Family, Levels, task

from rlanything.core.errors import EnvironmentFailure, MachineError, UserError
from rlanything.core.types import Observation, Status, StepResult, Task
from rlanything.loop import share
from rlanything.loop.episodes import OTHERWISE, SHARED, LocalHost, Move, Played

TASK = task(1, steps=4)


def moves(host, actions, of=TASK):
    """The answers to an episode's moves, one after the other, and its last move."""
    move = Move("e", of, 7, (), "", 5.0)
    answers = host.play([move])
    for number in range(1, len(actions) + 1):
        if answers[-1].status is not None:
            break
        move = Move("e", of, 7, tuple(actions[:number]), answers[-1].observation.text, 5.0)
        answers += host.play([move])
    return answers, move


@settings(deadline=None)
@given(st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=4), st.data())
def test_an_episode_can_move_to_another_host_at_any_moment_and_be_asked_twice(actions, data):
    expected, _ = moves(LocalHost(Family()), actions)
    hosts = [LocalHost(Family()) for _ in range(3)]
    found = []
    for number in range(len(expected)):
        seen = found[-1].observation.text if found else ""
        move = Move("e", TASK, 7, tuple(actions[:number]), seen, 5.0)
        asked = data.draw(st.lists(st.sampled_from(hosts), min_size=1, max_size=3))
        answers = [host.play([move])[0] for host in asked]
        assert answers == [expected[number]] * len(asked)
        found.append(answers[0])
    last = Move("e", TASK, 7, tuple(actions[: len(expected) - 1]), "", 5.0)
    assert [host.close([last]) for host in hosts] == [[""]] * 3


def test_an_environment_that_changes_its_task_changes_that_of_no_other_episode(monkeypatch):
    def reset(_: Levels, of: Task, seed: int) -> Observation:
        of.payload["places"].pop()
        return Observation(f"{of.instruction}: {of.payload['places']}", ACTIONS)

    monkeypatch.setattr(Levels, "reset", reset)
    family = Family()
    family.prepare = lambda work: work[0][0].payload["places"].clear()
    of = task(1, places=["here", "there"])
    host = LocalHost(family)
    seen = [host.play([Move(name, of, 7, (), "", 5.0)])[0].observation.text for name in ("one", "other")]
    assert seen == ["reach level 1: ['here']"] * 2
    assert of == task(1, places=["here", "there"])


def test_every_environment_that_was_opened_is_closed_once():
    family = Family()
    host = LocalHost(family)
    _, last = moves(host, ["win", "lose"])
    assert host.close([last]) == [""]
    assert family.closed == 1
    moves(host, ["win"])
    host.clear()
    host.clear()
    assert family.closed == 2


@pytest.mark.parametrize(
    ("fault", "status", "error"),
    [
        ("raise in reset", Status.ENV_ERROR, "RuntimeError: broken reset"),
        ("raise in step", Status.ENV_ERROR, "RuntimeError: broken step"),
    ],
)
def test_a_crash_is_an_answer_and_the_same_one_when_it_is_asked_again(fault, status, error):
    of = task(1, fault=fault)
    host = LocalHost(Family())
    answers, last = moves(host, ["win"], of)
    assert (answers[-1].status, answers[-1].error) == (status, error)
    assert host.play([last]) == [answers[-1]]
    assert LocalHost(Family()).play([last])[0].error == error


@pytest.mark.parametrize("said", [Observation("a \ud83d b"), Observation("a", ("go", "take \ude00"))])
@pytest.mark.parametrize("call", ["reset", "step"])
def test_half_a_surrogate_pair_that_no_model_can_read_is_an_error_of_the_environment(said, call, monkeypatch):
    answer = said if call == "reset" else StepResult(said, False, False)
    monkeypatch.setattr(Levels, call, lambda *_: answer)
    answers, _ = moves(LocalHost(Family()), ["win"])
    assert answers[-1].status is Status.ENV_ERROR
    assert answers[-1].error.startswith("UnicodeEncodeError: 'utf-8' codec can't encode character")


@pytest.mark.parametrize("call", ["reset", "step", "close"])
def test_an_environment_that_ends_the_program_ends_its_episode_alone(call, monkeypatch):
    monkeypatch.setattr(Levels, call, lambda *_: sys.exit(0))
    host = LocalHost(Family())
    answers, last = moves(host, ["win"])
    said = host.close([last])[0] if call == "close" else answers[-1].error
    assert said == "SystemExit: 0"
    assert answers[-1].status is (None if call == "close" else Status.ENV_ERROR)


SEEN = Observation("a room", ("go",))


@pytest.mark.parametrize(
    ("call", "answer", "error"),
    [
        ("reset", "a room", "TypeError: reset(task, seed) is 'a room', of type str; Observation is wanted"),
        (
            "reset",
            Observation(None),
            "TypeError: reset(task, seed): text is None, of type NoneType; str is wanted",
        ),
        ("step", (SEEN, True, True), "TypeError: step(action) is of type tuple; StepResult is wanted"),
        (
            "step",
            StepResult("a room", True, True),
            "TypeError: step(action) is 'a room', of type str; Observation",
        ),
        (
            "step",
            StepResult(SEEN, True, 0.3),
            "TypeError: step(action): success is 0.3, of type float; bool is wanted",
        ),
        (
            "step",
            StepResult(SEEN, True, "False"),
            "TypeError: step(action): success is 'False', of type str; bool",
        ),
        (
            "step",
            StepResult(SEEN, 1, False),
            "TypeError: step(action): done is 1, of type int; bool is wanted",
        ),
        (
            "reset",
            Observation("a", "go"),
            "TypeError: reset(task, seed): actions is 'go', of type str; a tuple",
        ),
        (
            "reset",
            Observation("a", {"go"}),
            "TypeError: reset(task, seed): actions is of type set; a tuple is wanted",
        ),
        ("reset", Observation("a", iter("go")), "TypeError: reset(task, seed): actions is of type str_"),
        (
            "reset",
            Observation("a", (1,)),
            "TypeError: reset(task, seed): one of actions is 1, of type int; str",
        ),
        (
            "reset",
            Observation("a", ("go",), (b"png",)),
            "TypeError: reset(task, seed): one of images is of type bytes",
        ),
    ],
)
def test_an_answer_of_another_type_is_an_error_that_names_the_method_and_what_is_wanted(
    call, answer, error, monkeypatch
):
    monkeypatch.setattr(Levels, call, lambda *_: answer)
    answers, _ = moves(LocalHost(Family()), ["win"])
    assert (answers[-1].status, answers[-1].success) == (Status.ENV_ERROR, False)
    assert answers[-1].error.startswith(error)


def test_truth_values_of_numpy_are_taken(monkeypatch):
    monkeypatch.setattr(Levels, "step", lambda *_: StepResult(SEEN, np.bool_(True), np.bool_(True)))
    answers, _ = moves(LocalHost(Family()), ["win"])
    assert answers[-1].error == ""
    assert answers[-1].success is True


def test_an_environment_that_passes_its_methods_on_is_one(monkeypatch):
    class Around:
        def __init__(self, inner):
            self._inner = inner

        def __getattr__(self, name):
            return getattr(self._inner, name)

    monkeypatch.setattr(Family, "environment", lambda family: Around(Levels(family)))
    answers, _ = moves(LocalHost(Family()), ["win"])
    assert answers[-1].error == ""
    assert answers[-1].observation.text == "win was done"


def test_a_list_of_actions_is_taken_as_it_was_when_it_was_shown(monkeypatch):
    listed = ["win", "lose"]
    monkeypatch.setattr(Levels, "reset", lambda *_: Observation("a room", listed))
    answers, _ = moves(LocalHost(Family()), [])
    listed.clear()
    assert answers[0].observation.actions == ("win", "lose")


def test_an_environment_that_an_open_episode_has_is_no_fresh_one(monkeypatch):
    only = Levels(Family())
    monkeypatch.setattr(Family, "environment", lambda _: only)
    host = LocalHost(Family())
    asked = [Move(name, TASK, 7, (), "", 5.0) for name in ("one", "other")]
    assert [answer.error for answer in host.play(asked)] == ["", f"ValueError: {SHARED}"]
    host.clear()
    assert host.play(asked[1:])[0].error == ""


def test_what_is_no_environment_ends_the_run_with_what_is_wanted(monkeypatch):
    monkeypatch.setattr(Family, "environment", lambda _: "a room")
    with pytest.raises(
        UserError, match=r"environment\(\) is 'a room', of type str; reset, step and close are wanted"
    ):
        LocalHost(Family()).play([Move("e", TASK, 7, (), "", 5.0)])


def test_an_error_of_closing_is_found_by_a_host_that_never_had_the_episode_too():
    of = task(1, fault="raise in close")
    host = LocalHost(Family())
    _, last = moves(host, ["win"], of)
    assert host.close([last]) == LocalHost(Family()).close([last]) == ["RuntimeError: broken close"]


class Moody(Family):
    """Says something else in every episode."""

    def environment(self):
        made = super().environment()
        self.opened = getattr(self, "opened", 0) + 1
        made._seen = lambda text: Observation(f"{text} in mood {self.opened}", ACTIONS)
        return made


def test_an_environment_that_answers_otherwise_when_it_is_played_again_is_an_error_and_not_data():
    host = LocalHost(Moody())
    answers, last = moves(host, ["win"])
    assert answers[-1].status is None
    host.clear()
    (again,) = host.play([last])
    assert (again.status, again.error) == (Status.ENV_ERROR, OTHERWISE)


class Hasty(Family):
    """Ends every episode but the first after its first action, with success."""

    def environment(self):
        made = super().environment()
        self.opened = getattr(self, "opened", 0) + 1
        if self.opened > 1:
            made.step = lambda action: StepResult(Observation("You won.", ()), True, True)
        return made


def test_an_episode_that_ends_earlier_when_it_is_played_again_is_an_error_and_no_success():
    host = LocalHost(Hasty())
    _, last = moves(host, ["look", "look"])
    assert last.actions == ("look", "look")
    host.clear()
    (again,) = host.play([last])
    assert (again.status, again.success, again.error) == (Status.ENV_ERROR, False, OTHERWISE)


def test_time_that_is_over_while_a_call_returns_ends_neither_the_episode_nor_the_run(monkeypatch):
    real = signal.setitimer

    def late(which: int, seconds: float, again: float = 0.0):
        if not seconds:
            monkeypatch.undo()
            signal.raise_signal(signal.SIGALRM)
        return real(which, seconds, again)

    monkeypatch.setattr(signal, "setitimer", late)
    (answer,) = LocalHost(Family()).play([Move("e", TASK, 7, (), "", 5.0)])
    assert (answer.status, answer.error) == (None, "")


def test_two_episodes_with_one_seed_do_not_share_an_environment():
    family = Family()
    host = LocalHost(family)
    first, second = (Move(name, TASK, 7, (), "", 5.0) for name in "ab")
    assert host.play([first])[0].observation == host.play([second])[0].observation
    host.clear()
    assert family.closed == 2


def test_programs_are_run_by_families_that_can():
    with pytest.raises(TypeError, match="Family runs no programs"):
        LocalHost(Family()).examine([])


def test_the_host_of_a_block_serves_it_and_nothing_after_it():
    host, family = LocalHost(Family()), Family()
    with share.hosted(host):
        assert share.host_of(family) is host
    assert share.host_of(family).family is family


class Ahead(Family):
    """Works ahead, and judges at the limit; each may fail or hang."""

    def __init__(self, fault: str, error: Exception | None) -> None:
        super().__init__()
        self.fault, self.error = fault, error

    def _do(self, name: str) -> None:
        if name == self.fault:
            if self.error is None:
                time.sleep(30)
            else:
                raise self.error

    def prepare(self, starting: object) -> None:
        self._do("prepare")

    def prefetch(self, acting: object) -> None:
        self._do("prefetch")

    def verdicts(self, environments: Sequence[object]) -> list[object]:
        self._do("verdicts")
        return [Fails() for _ in environments]


class Fails:
    """The verdict on an episode that is no success."""

    def result(self) -> bool:
        return False


def played(fault: str, error: Exception | None) -> list[Played]:
    """The first two answers to an episode that is cut off after one move. Each call may take a tenth of a second."""
    host = LocalHost(Ahead(fault, error))
    first = host.play([Move("e", TASK, 7, (), "", 0.1)])
    last = Move("e", TASK, 7, (ACTIONS[0],), first[0].observation.text, 0.1, last=True)
    return [*first, *host.play([last])]


@pytest.mark.parametrize("fault", ["prepare", "prefetch"])
@pytest.mark.parametrize(
    "error", [TimeoutError(), RuntimeError("broken"), EnvironmentFailure("broken"), SystemExit(0)]
)
def test_work_ahead_that_fails_changes_no_answer(fault, error):
    assert played(fault, error) == played("", None)


@pytest.mark.parametrize("fault", ["prepare", "prefetch", "verdicts"])
def test_what_says_that_no_episode_can_run_here_ends_the_run(fault):
    with pytest.raises(MachineError, match="no sandbox here"):
        played(fault, MachineError("no sandbox here"))


@pytest.mark.parametrize(
    ("error", "status"), [(None, Status.TIMEOUT), (RuntimeError("broken"), Status.ENV_ERROR)]
)
def test_a_family_whose_verdicts_fail_or_hang_has_an_error_of_its_episodes(error, status):
    *_, answer = played("verdicts", error)
    assert (answer.status, answer.success) == (status, False)
    assert answer.error == ("no answer within 0.1 s" if error is None else "RuntimeError: broken")
