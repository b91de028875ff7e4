"""Episodes that begin outside of the loop: what `reset` gives is checked as in it, and the environment is closed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from scripted import Family, Levels, task

from rlanything.checks.adaptation.fresh import Map
from rlanything.checks.selection import measure
from rlanything.core.types import Observation, StepResult, Task
from rlanything.loop.episodes import opening
from rlanything.rewards.unit_tests.evaluation import UnitTestEvaluation
from rlanything.stages.solving import demonstrated

TASK = task(1)
CONFIG = SimpleNamespace(rollout=SimpleNamespace(timeout_s=5.0))


class Counting(Levels):
    """An environment that counts how often it was closed."""

    closed = 0

    def close(self) -> None:
        Counting.closed += 1


@pytest.fixture
def family(monkeypatch: pytest.MonkeyPatch) -> Family:
    monkeypatch.setattr(Counting, "closed", 0)
    made = Family()
    monkeypatch.setattr(made, "environment", lambda: Counting(made), raising=False)
    return made


def examined(family: Family) -> object:
    """The selection of programs by tests, up to its first question to a model."""
    family.outputs = list
    return next(measure._examined(family, None, [TASK], [], 0))


CALLERS = {
    "opening": lambda family: opening(family, TASK, 0),
    "map": lambda family: Map(SimpleNamespace(family=family), None).distance(TASK, TASK),
    "panel": lambda family: UnitTestEvaluation(None, family, None).problems([TASK], []),
    "selection": examined,
}


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (SimpleNamespace(text="a room", actions=()), "SimpleNamespace; Observation is wanted"),
        (Observation(7), "text is 7, of type int; str is wanted"),
    ],
)
def test_what_reset_gives_is_checked_and_the_environment_is_closed(caller, answer, said, family, monkeypatch):
    monkeypatch.setattr(Levels, "reset", lambda *_: answer)
    with pytest.raises(TypeError, match=rf"reset\(task, seed\).*{said}"):
        CALLERS[caller](family)
    assert Counting.closed == 1


def test_an_opening_is_of_a_copy_of_the_task(family, monkeypatch):
    def reset(_: Levels, of: Task, seed: int) -> Observation:
        of.payload.clear()
        return Observation(f"a room, {seed}", ["win"])

    monkeypatch.setattr(Levels, "reset", reset)
    assert opening(family, TASK, 3) == Observation("a room, 3", ("win",))
    assert TASK.payload == task(1).payload
    assert Counting.closed == 1


@pytest.mark.parametrize(
    ("method", "answer"),
    [("reset", None), ("step", StepResult(Observation("a"), True, "no"))],
)
def test_an_experts_try_at_which_the_environment_answers_otherwise_has_no_result(
    method, answer, family, monkeypatch
):
    shown = [(Observation("a"), "win")] * TASK.payload["steps"]
    for name in ("label_steps", "explain", "rewrite"):
        setattr(family, name, lambda *_: [])
    family.demonstrate = lambda *_: shown
    assert demonstrated(family, TASK, 0, CONFIG) is True
    monkeypatch.setattr(Levels, method, lambda *_: answer)
    assert demonstrated(family, TASK, 0, CONFIG) is None
    assert Counting.closed == 2
