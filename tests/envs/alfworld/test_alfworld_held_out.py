"""Task types that no arm trains on: which splits have them, and that no rewrite brings them in."""

from __future__ import annotations

import pytest

from envs.alfworld.family import AlfworldFamily
from envs.alfworld.games.game import Game
from envs.splits import HELD_OUT, SPLITS
from rlanything.core.splits import PRACTICE
from rlanything.core.types import InvalidProposal, Task

OTHERS = {"pick", "look", "clean", "heat"}


@pytest.fixture(scope="module")
def family() -> AlfworldFamily:
    return AlfworldFamily(held_out=["cool", "two"])


def kinds(tasks: list[Task]) -> set[str]:
    return {Game.from_payload(task.payload).goal.task for task in tasks}


@pytest.mark.parametrize("split", SPLITS)
def test_what_is_trained_and_measured_as_ever_has_none_of_them(family: AlfworldFamily, split: str) -> None:
    assert kinds(family.make(split, 24, 0)) == OTHERS


def test_the_new_splits_have_them(family: AlfworldFamily) -> None:
    assert family.splits() == (*SPLITS, PRACTICE, HELD_OUT)
    assert kinds(family.make(HELD_OUT, 12, 0)) == {"cool", "two"}
    assert kinds(family.make(PRACTICE, 24, 0)) == OTHERS | {"cool", "two"}


def test_without_any_there_are_no_such_splits() -> None:
    assert AlfworldFamily().splits() == SPLITS


def test_a_rewrite_into_one_of_them_is_refused() -> None:
    plain, family = AlfworldFamily(), AlfworldFamily(held_out=["pick"])
    refused = accepted = 0
    for task in family.make("train", 40, 0):
        reply = plain.rewrite(task, "easier", 0)
        wanted = plain.parse(task, reply)
        if kinds([wanted]) == {"pick"}:
            refused += 1
            with pytest.raises(InvalidProposal, match="task 'pick' is held out of training"):
                family.parse(task, reply)
        else:
            accepted += 1
            assert family.parse(task, reply) == wanted
    assert refused
    assert accepted


def test_the_teacher_asks_for_none_of_them(family: AlfworldFamily) -> None:
    found = []
    for task in family.make(PRACTICE, 40, 1):
        try:
            reply = family.rewrite(task, "harder", 0)
        except InvalidProposal:
            continue
        found.append(family.parse(task, reply))
    assert found
    assert kinds(found) <= OTHERS
