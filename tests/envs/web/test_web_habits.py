"""Habits of demonstrations: what they do, how often, and that the expert without noise has none."""

from __future__ import annotations

from collections import Counter

import pytest
from web_cases import at_start, small

from envs.web.teacher.expert import demonstrate

MANY = 60


def shown(pool, kind, number, habits, noise=0.0):
    episode = at_start(pool, kind, f"habit-{number}")
    pairs = demonstrate(episode, number, noise, habits)
    return [command for _, command in pairs], episode


def test_haste_ends_the_task_too_early_as_often_as_declared(pool):
    ended = Counter(
        shown(pool, "enter-text", number, {"haste": 0.6})[1].view.success for number in range(MANY)
    )
    assert 0.4 * MANY < ended[False] < 0.8 * MANY


def test_haste_always_given_in_to_is_one_command(pool):
    commands, episode = shown(pool, "enter-text", 1, {"haste": 1.0})
    assert len(commands) == 1
    assert episode.done
    assert not episode.view.success


def test_focus_is_a_click_before_typing_and_harms_nothing(pool):
    commands, episode = shown(pool, "enter-text", 1, {"focus": 1.0})
    assert [command.split()[0] for command in commands] == ["click", "type", "click"]
    assert commands[0].split()[1] == commands[1].split()[1]
    assert episode.view.success


def test_a_kind_with_one_goal_knows_no_haste(pool):
    assert shown(pool, "click-button", 1, {"haste": 1.0, "focus": 1.0})[1].view.success


@pytest.mark.parametrize("kind", ["enter-text", "click-option", "click-tab-2"])
def test_habits_of_chance_zero_change_nothing(pool, kind):
    for number in range(4):
        plain = shown(pool, kind, number, None, noise=0.3)[0]
        assert shown(pool, kind, number, {"haste": 0.0, "focus": 0.0}, noise=0.3)[0] == plain


def test_a_family_without_noise_shows_its_expert_at_its_best():
    family = small(habits={"haste": 1.0})
    task = next(t for t in family.make("train", 12, 0) if t.payload["kind"] == "enter-text")
    assert len(family.demonstrate(task, 1, 0.0)) == 2
    assert len(family.demonstrate(task, 1, 1e-9)) == 1


def test_an_unknown_habit_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match=r"habits: .*did you mean haste"):
        small(habits={"hast": 0.5})


def test_a_chance_above_one_is_refused():
    with pytest.raises(ValueError, match="habits"):
        small(habits={"haste": 1.5})
