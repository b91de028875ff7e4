"""The labels of steps against the definition: shortest remaining solutions, found by trying everything in the page."""

from __future__ import annotations

import random

import pytest
from web_cases import at_start, evaluate, forget, played, suits

from envs.web.kinds.table import KINDS
from envs.web.teacher import oracle

SOLVED_BY_TRYING = {
    "click-button": 1,
    "click-button-sequence": 2,
    "click-dialog-2": 1,
    "click-tab": 1,
    "click-tab-2-easy": 1,
    "click-collapsible": 2,
    "click-option": 2,
    "choose-list": 2,
    "enter-text": 2,
    "enter-password": 3,
    "focus-text-2": 1,
    "form-sequence-3": 2,
    "email-inbox-delete": 1,
    "click-checkboxes-transfer": 3,
}
"""Kinds in which nothing must be looked for -> longest solution that is searched for."""


MIDDLES = """() => [...document.querySelectorAll('#area button')]
    .sort((a, b) => (a.textContent < b.textContent ? -1 : 1))
    .map((button) => button.getBoundingClientRect())
    .map((box) => [Math.round(box.left + box.width / 2), Math.round(box.top + box.height / 2)])"""
"""A script: where the buttons of the page are, in the order of their names."""

FEW = 8
"""Commands up to which all ways are tried after a bad command too."""


def run(pool, kind, seed, commands):
    episode = at_start(pool, kind, seed)
    for command in commands:
        episode.step(command)
    return episode


def distance(pool, kind, seed, commands, most) -> int | None:
    """The least number of further commands to a success; None where there is none within `most`."""
    episode = run(pool, kind, seed, commands)
    if episode.done:
        return 0 if episode.view.success else None
    if most <= 0:
        return None
    found = None
    for command in episode.commands.values():
        rest = distance(pool, kind, seed, [*commands, command], (most if found is None else found - 1) - 1)
        if rest is not None:
            found = rest + 1
    return found


def compared(pool, kind, seed, most) -> None:
    """At the start and after one good and one bad command, good is exactly what shortens the remaining way."""
    start = at_start(pool, kind, seed)
    firsts = list(start.commands.values())
    rng = random.Random(seed)
    good = [c for c in firsts if c in start.setting.kind.good(start.scene)]
    bad = [c for c in firsts if c not in good]
    pasts = [[], [rng.choice(good)], *([[rng.choice(bad)]] if bad and len(firsts) <= FEW else [])]
    for past in pasts:
        episode = run(pool, kind, seed, past)
        least = distance(pool, kind, seed, past, most + len(past) if past and past[0] in bad else most)
        if episode.done or least is None:
            continue
        labelled = set(episode.setting.kind.good(episode.scene))
        shortest = {
            command
            for command in episode.commands.values()
            if distance(pool, kind, seed, [*past, command], least - 1) is not None
        }
        assert labelled == shortest, (kind, seed, past, least)


FAST = (
    "click-button",
    "click-button-sequence",
    "click-tab",
    "click-collapsible",
    "form-sequence-3",
)


@pytest.mark.parametrize("kind", FAST)
def test_good_steps_are_those_on_shortest_solutions(pool, kind):
    compared(pool, kind, "search-1", SOLVED_BY_TRYING[kind])


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", sorted(SOLVED_BY_TRYING))
def test_good_steps_are_those_on_shortest_solutions_of_more_pages(pool, kind):
    seeds = [f"search-{n}" for n in range(40) if suits(pool, kind, f"search-{n}")]
    for seed in seeds[:2]:
        compared(pool, kind, seed, SOLVED_BY_TRYING[kind])


@pytest.mark.parametrize("kind", ["click-tab-2", "click-collapsible-2-nodelay", "navigate-tree"])
def test_where_something_is_looked_for_each_new_place_is_good_once(pool, kind):
    """And following good commands from wherever random ones led reaches the goal, unless the page ended."""
    rng, reached = random.Random(kind), 0
    for number in range(6):
        episode = at_start(pool, kind, f"look-{number}")
        for _ in range(2):
            if not episode.done:
                episode.step(rng.choice(sorted(episode.commands.values())))
        if not episode.done:
            played(episode, rng)
            reached += episode.view.success
    assert reached >= 1


def test_bad_steps_are_told_apart(pool):
    episode = at_start(pool, "enter-text", "1")
    text = KINDS["enter-text"].words(episode.instruction)["text"]
    found = oracle.labels(
        episode, ["fly away", "click 99", "type 1 wrong", f"type 1 {text}", f"type 1 {text}", "click 2"]
    )
    assert [label.reason for label in found] == [
        oracle.NOT_POSSIBLE,
        oracle.NOT_POSSIBLE,
        oracle.WRONG_TEXT,
        "right text",
        oracle.WRONG_TEXT,
        oracle.GOAL_REACHED,
    ]
    assert [label.good for label in found] == [False, False, False, True, False, True]


def test_ending_the_task_before_everything_is_done_is_too_early(pool):
    episode = at_start(pool, "enter-text", "1")
    assert oracle.labels(episode, ["click 2", "click 1"]) == [
        (False, oracle.TOO_EARLY), (False, oracle.NOT_POSSIBLE),
    ]  # fmt: skip


def test_giving_up_is_too_early(pool):
    episode = at_start(pool, "enter-text", "1")
    assert oracle.label(episode, "done").good is False
    assert episode.done
    assert not episode.view.success


def test_a_tool_call_on_an_element_is_labelled_like_its_short_text(pool):
    call = '{"action_type": "CLICK", "element": 1}'
    assert oracle.label(at_start(pool, "click-test", "1"), call) == (True, oracle.GOAL_REACHED)


def test_what_was_reached_before_is_no_progress(pool):
    """Otherwise going back and forth would be praised every second time."""
    episode = at_start(pool, "enter-text", "1")
    text = KINDS["enter-text"].words(episode.instruction)["text"]
    found = oracle.labels(episode, [f"type 1 {text}", "type 1 wrong", f"type 1 {text}", "click 2"])
    assert [label.good for label in found] == [True, False, False, True]
    assert found[2].reason == oracle.NO_PROGRESS


def test_a_place_that_was_seen_to_hold_the_goal_is_gone_back_to_once(pool):
    """Two tabs are opened in turn: each is new once, and going back is the shortest way, but no progress any more."""
    episode = at_start(pool, "click-tab-2", "look-1")
    first, second = [item.number for item in episode.view.elements if item.name.startswith("Tab #")][:2]
    found = oracle.labels(episode, [f"click {place}" for place in (second, first) * 4])
    assert not episode.done
    assert sum(label.good for label in found) <= 2


def test_a_click_on_a_place_is_labelled_like_one_on_the_element_there(pool):
    forget(pool)  # so that the browser shows this page
    page = at_start(pool, "click-test", "1")
    ((x, y),) = evaluate(pool, "click-test", MIDDLES)
    assert oracle.label(page, f'{{"action_type": "CLICK", "x": {x}, "y": {y}}}') == (
        True,
        oracle.GOAL_REACHED,
    )
    other = at_start(pool, "click-button-sequence", "2")
    assert oracle.label(other, '{"action_type": "CLICK", "x": 1, "y": 399}').good is False


def test_a_click_on_a_place_counts_for_goals_of_several_clicks(pool):
    """`click-button-sequence` asks for ONE and then TWO; the page does not show that ONE was clicked."""
    forget(pool)
    episode = at_start(pool, "click-button-sequence", "2")
    middles = evaluate(pool, "click-button-sequence", MIDDLES)
    calls = [f'{{"action_type": "CLICK", "x": {x}, "y": {y}}}' for x, y in middles]
    assert [label.good for label in oracle.labels(episode, calls)] == [True, True]


def test_a_text_that_is_put_behind_what_a_field_holds_is_right_only_where_the_field_then_holds_it(pool):
    """Otherwise typing it again and again would be praised each time, because the field is never the same."""
    episode = at_start(pool, "enter-text", "1")
    text = KINDS["enter-text"].words(episode.instruction)["text"]
    into_the_focused = f"type 0 {text}"
    found = oracle.labels(episode, ["click 1", into_the_focused, into_the_focused, into_the_focused])
    assert [label.good for label in found[1:]] == [True, False, False]
    episode = at_start(pool, "enter-text", "1")
    assert [
        label.good for label in oracle.labels(episode, ["click 1", "type 0 zz", into_the_focused])[1:]
    ] == [False] * 2


def test_a_text_goes_into_the_focused_field_wherever_the_pointer_is(pool):
    episode = at_start(pool, "login-user", "1")
    name, word = episode.scene.fields()
    for text in (f"click {word.number}", f"hover {name.number}", "type 0 abc"):
        episode.step(text)
    assert episode.scene.past[-1][1].number == word.number
    assert [item.value for item in episode.scene.fields()] == ["", "abc"]


def test_a_wrong_button_that_the_page_overlooks_is_no_success(pool):
    """The page of `form-sequence-2` takes any radio button."""
    for number in range(4):
        episode = at_start(pool, "form-sequence-2", f"radio-{number}")
        good = episode.setting.kind.good(episode.scene)
        wrong = next(r.number for r in episode.scene.having("radio") if f"click {r.number}" not in good)
        typing = next(command for command in good if command.startswith("type"))
        (submit,) = episode.scene.named("Submit")
        for text in (f"click {wrong}", typing, f"click {submit.number}"):
            episode.step(text)
        assert (episode.done, episode.view.success) == (True, False)
        assert played(right := at_start(pool, "form-sequence-2", f"radio-{number}"), random.Random(0))
        assert right.view.success


@pytest.mark.parametrize("button", ["right", '{"action_type": "CLICK", "button": "middle", "element": %d}'])
def test_a_click_with_another_button_presses_nothing(pool, button):
    """Otherwise TWO would be good after it, though the page still waits for ONE."""
    episode = at_start(pool, "click-button-sequence", "2")
    ((one,), (two,)) = (episode.scene.named(name) for name in ("ONE", "TWO"))
    first = f"right {one.number}" if button == "right" else button % one.number
    found = oracle.labels(episode, [first, f"click {two.number}"])
    assert [label.good for label in found] == [False, False]


def searched(pool, seed: str, *names: str):
    """A search engine after clicks on elements with these names; a name with a blank is typed."""
    episode = at_start(pool, "search-engine", seed)
    for name in names:
        number = episode.scene.fields()[0].number if name.startswith("type ") else named(episode, name)
        episode.step(f"type {number} {name[5:]}" if name.startswith("type ") else f"click {number}")
    return episode


def named(episode, name: str) -> int:
    return episode.scene.named(name)[0].number


def good(episode) -> set[str]:
    """The names of what a good click is on; `type` for a good text."""
    numbers = {item.number: item.name for item in episode.view.elements}
    commands = episode.setting.kind.good(episode.scene)
    return {"type" if c.startswith("type") else numbers[int(c.split(" ")[1])] for c in commands}


def test_a_page_of_results_is_reached_by_its_number_too(pool):
    """Seed s-1 asks for the 7th result, which is on the third page, seed s-7 for the first."""
    words = {seed: at_start(pool, "search-engine", seed).scene.words for seed in ("s-1", "s-7")}
    assert [one["place"] for one in words.values()] == ["7", "1"]
    text, other = (f"type {one['text']}" for one in words.values())
    assert good(searched(pool, "s-1", text, "Search")) == {"3"}, "two clicks on > are a longer way"
    assert good(searched(pool, "s-1", text, "Search", "2")) == {"3", ">"}
    assert good(searched(pool, "s-7", other, "Search", "3")) == {"1", "Search"}
    assert good(searched(pool, "s-7", other, "Search", "2")) == {"1", "<", "Search"}
    there = searched(pool, "s-1", text, "Search", "3")
    assert len(good(there)) == 1
    assert oracle.label(there, next(iter(there.setting.kind.good(there.scene)))) == (
        True,
        oracle.GOAL_REACHED,
    )


def test_results_of_another_text_are_searched_again(pool):
    """The page takes a click on a result by the text that was searched for, and not by what the field holds now."""
    text = at_start(pool, "search-engine", "s-7").scene.words["text"]
    assert good(searched(pool, "s-7", "type zz", "Search")) == {"type"}
    assert good(searched(pool, "s-7", "type zz", "Search", f"type {text}")) == {"Search"}
    kept = searched(pool, "s-7", f"type {text}", "Search", "type zz")
    assert oracle.label(kept, next(iter(kept.setting.kind.good(kept.scene)))) == (True, oracle.GOAL_REACHED)
