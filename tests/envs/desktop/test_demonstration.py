"""Experts and rewrites of the small desktop as a model writes them, without and on a desktop."""

from __future__ import annotations

import pytest

from envs.computer import reply
from envs.computer.actions import Refusal
from envs.desktop.small.family import DesktopFamily
from envs.desktop.small.templates import templates
from rlanything.core.protocols import Teacher
from rlanything.core.types import Direction, Task

SCREEN = (800, 600)
FAMILY = DesktopFamily(observe="screenshot", screen=SCREEN)
TASKS = [
    Task("desktop", said, {"template": name, "row": 1, "key": key})
    for name, one in templates().items()
    for key, said in one.instructions(1).items()
]


def test_every_expert_can_be_said_as_tool_calls():
    for task in TASKS:
        shown = FAMILY.demonstration(task)
        assert len(shown) == len(FAMILY.expert(task))
        assert shown[0][0].text == task.instruction
        actions = [reply.read(said, SCREEN) for _, said in shown]
        assert not [action for action in actions if isinstance(action, Refusal)]
        assert [action.kind for action in actions].count("done") == 1 == (actions[-1].kind == "done")


def test_the_short_text_and_the_tool_call_of_a_command_are_one_action():
    task = next(task for task in TASKS if task.payload["template"] == "editor-save-as")
    for command, (_, said) in zip(FAMILY.expert(task), FAMILY.demonstration(task), strict=True):
        assert reply.read(said, SCREEN) == reply.read(command, SCREEN)


def test_every_task_has_a_valid_rewrite_in_both_directions():
    for task in TASKS:
        for way in Direction:
            child = FAMILY.parse(task, FAMILY.rewrite(task, way, 0))
            assert FAMILY.validate(child) == ""
            assert (child.payload["key"] == task.payload["key"]) is (way is Direction.EASIER)


def test_a_desktop_has_experts_and_no_oracle_of_steps():
    assert not isinstance(FAMILY, Teacher)


@pytest.mark.parametrize(
    ("name", "key"), [("terminal-move", "evaluator2"), ("editor-add-line", "evaluator1")]
)
def test_a_demonstration_without_items_solves_its_task(desktop, name, key):
    """What a demonstration says that was seen is what a desktop without a tree answers, but for its items."""
    task = next(t for t in TASKS if (t.payload["template"], t.payload["key"]) == (name, key))
    environment = desktop.environment()
    try:
        seen = environment.reset(task, 0)
        for expected, said in desktop.demonstration(task):
            assert seen.text.splitlines()[0] == expected.text
            result = environment.step(said)
            seen = result.observation
        assert result.success
    finally:
        environment.close()
