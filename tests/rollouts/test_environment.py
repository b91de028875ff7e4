"""What the environment says about stored steps. Where it refuses, differs, fails or hangs, the rest is shown."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from stage_cases import ROOT

from rlanything.config import load
from rlanything.core.types import Observation, Status, Step, StepResult, Task, Trajectory
from rlanything.rollouts import environment
from rlanything.rollouts.environment import Knowledge, knowledge

TASK = Task("game", "go", {"rooms": 3})


class Rooms:
    """Three rooms in a row. `says`: what it answers in the second one."""

    def __init__(self, says: str = "room 1", validate: str = "") -> None:
        self.says, self.refusal, self.closed = says, validate, 0

    def validate(self, task: Task) -> str:
        return self.refusal

    def environment(self) -> Rooms:
        return self

    def reset(self, task: Task, seed: int) -> Observation:
        assert seed == 7, "the recorded seed"
        self.at = 0
        return Observation("room 0", ("on",))

    def step(self, action: str) -> StepResult:
        self.at += 1
        text = self.says if self.at == 1 else f"room {self.at}"
        return StepResult(Observation(text, ("on", "back")), False, False)

    def close(self) -> None:
        self.closed += 1


class Taught(Rooms):
    """A `Teacher`, too."""

    def demonstrate(self, task, seed, noise):
        raise AssertionError

    def rewrite(self, task, direction, seed):
        raise AssertionError

    def label_steps(self, task, actions):
        return [action == "on" for action in actions]

    def explain(self, task, actions):
        return [f"because {action}" for action in actions]


def trajectory(*actions: str, status: Status = Status.OK) -> Trajectory:
    steps = tuple(Step((), (), (), (), a, True, f"room {k + 1}") for k, a in enumerate(actions))
    return Trajectory(TASK.task_id, 4, 0, 7, "room 0", steps, 1, status)


def test_commands_and_labels():
    family = Taught()
    found = Knowledge(family).of(TASK, trajectory("on", "back"))
    assert found == [
        {"good": True, "reason": "because on", "commands": ["on"]},
        {"good": False, "reason": "because back", "commands": ["on", "back"]},
    ]
    assert family.closed == 1


def test_commands_end_where_the_environment_answers_otherwise():
    found = Knowledge(Rooms("a dragon")).of(TASK, trajectory("on", "on", "on"))
    assert found == [{"commands": ["on"]}, {}, {}]


@pytest.mark.parametrize(
    ("family", "task", "status"),
    [
        (None, TASK, Status.OK),
        (Taught(validate="no"), TASK, Status.OK),
        (Taught(), None, Status.OK),
        (Taught(), TASK, Status.ENV_ERROR),
    ],
)
def test_where_nothing_is_asked(family, task, status):
    known = Knowledge(family)
    assert known.of(task, trajectory("on", status=status)) == [{}]
    assert known.problem == ""


def test_what_fails_keeps_what_was_known_and_is_said(monkeypatch):
    def step(self, action):
        raise ZeroDivisionError("lost")

    monkeypatch.setattr(Rooms, "step", step)
    known = Knowledge(Taught())
    assert known.of(TASK, trajectory("on")) == [{"good": True, "reason": "because on", "commands": ["on"]}]
    assert known.problem == "the environment was asked about slot 4 and failed: lost"
    assert known.family.closed == 1


def test_an_environment_that_ends_the_program_ends_nothing(monkeypatch):
    def step(self, action):
        raise SystemExit(3)

    monkeypatch.setattr(Rooms, "step", step)
    known = Knowledge(Taught())
    assert known.of(TASK, trajectory("on")) == [{"good": True, "reason": "because on", "commands": ["on"]}]
    assert known.problem == "the environment was asked about slot 4 and failed: SystemExit: 3"
    assert known.family.closed == 1


@pytest.mark.parametrize(
    ("method", "found", "said"),
    [
        ("label_steps", [True, False], "label_steps gave"),
        ("label_steps", ["yes"], "one bool for each"),
        ("explain", [], "explain gave"),
        ("reset", None, "reset(task, seed) is None, of type NoneType; Observation is wanted"),
        ("step", None, "step(action) is None, of type NoneType; StepResult is wanted"),
    ],
)
def test_an_answer_of_another_form_is_said_and_nothing_follows_from_it(method, found, said, monkeypatch):
    monkeypatch.setattr(Taught, method, lambda *_: found)
    known = Knowledge(Taught())
    (facts,) = known.of(TASK, trajectory("on"))
    assert said in known.problem
    assert ("good" in facts) == (method in ("reset", "step"))


def test_what_hangs_is_not_asked_again(monkeypatch):
    monkeypatch.setattr(environment, "SECONDS", 0.2)
    monkeypatch.setattr(Rooms, "step", lambda self, action: time.sleep(60))
    known = Knowledge(Rooms())
    began = time.monotonic()
    known.of(TASK, trajectory("on"))
    assert "slot 4: no answer within 0.2 s; it was not asked further" in known.problem
    known.of(TASK, trajectory("on"))
    assert time.monotonic() - began < 30


def run_of(home: Path, **env) -> SimpleNamespace:
    """A run that was passed on together with its project, whose environment differs in `env` from ours."""
    home.mkdir(parents=True, exist_ok=True)
    text = (ROOT / "params.yaml").read_text()
    for name, value in env.items():
        text = text.replace(f"  {name}: null\n", f"  {name}: {value}\n")
    (home / "params.yaml").write_text(text)
    config = load(home / "params.yaml")
    terms = SimpleNamespace(arm=config.arm("full"), judge=config.judge, env=config.env)
    return SimpleNamespace(root=home, terms=terms)


def test_the_environment_of_another_project_is_not_made(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(environment.targets, "instantiate", lambda env, *_: made.append(env["data"]))
    mine, foreign = run_of(tmp_path / "mine"), run_of(tmp_path / "mine" / "got", data="/evil")
    assert foreign.terms.env["data"] == "/evil"
    found = knowledge(foreign, mine.root)
    assert made == []
    assert "--environment asks nevertheless" in found.problem
    knowledge(foreign, mine.root, asked=False)
    assert made == []
    knowledge(mine, mine.root)
    knowledge(run_of(tmp_path / "mine" / ".rla" / "trial", data="/own"), mine.root)
    knowledge(foreign, mine.root, asked=True)
    assert made == [None, "/own", "/evil"]
