"""Distributions whose bars are filters, in a real browser."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from view_cases import group, made, page, rollout, step

pytestmark = pytest.mark.integration
BARS = """name => [...document.querySelectorAll(`[data-name=${name}] .bar`)].map(
    bar => [bar.title, bar.getAttribute('aria-pressed') === 'true'])"""
RANGES = """lists => lists.map(values => {
    const {ranges, place} = rangesOf(values);
    return [ranges, values.map(place)];
})"""


@pytest.fixture(scope="module")
def many(server) -> str:
    """Iterations 0 to 29 with a task each, whose rollouts have 1, 2, ... steps; every third one is lost."""
    folder, url = server
    pages = []
    for k in range(30):
        tries = [
            rollout(0, str, steps=[step(j, str) for j in range(k + 1)], reward=k / 10),
            rollout(1, str, outcome=1 if k % 3 else -1, steps=[step(0, str)], reward=None),
        ]
        pages.append(page(k, [group(k, tries, accuracy=(k % 5) / 4)]))
    made(folder / "many", pages)
    return f"{url}/many/"


def shown(tab, name: str) -> dict[str, int]:
    """The counts of the bars of a distribution by their range."""
    pairs = [title.rsplit(": ", 1) for title, _ in tab.evaluate(BARS, name)]
    return {said: int(number.split()[0]) for said, number in pairs}


def chosen(tab, name: str) -> list[str]:
    return [title.rsplit(": ", 1)[0] for title, pressed in tab.evaluate(BARS, name) if pressed]


def test_bars_count_what_filters_and_search_leave(many, tab, look, counted):
    look(many)
    assert tab.is_hidden("#shapes"), "nothing is drawn before somebody asks"
    tab.keyboard.press("h")
    tab.wait_for_selector("[data-name=length] .bar")
    assert shown(tab, "outcome") == {"no success": 10, "success": 50}
    assert shown(tab, "length") == {"0 to 4": 34, "5 to 9": 5, "10 to 14": 5, "15 to 19": 5, "20 to 24": 5,
                                    "25 to 29": 5, "30 to 34": 1}  # fmt: skip
    assert shown(tab, "accuracy") == {"0": 12, "0.25": 12, "0.5": 12, "0.75": 12, "1": 12}
    assert shown(tab, "reward")["none"] == 30
    tab.check("#filters input[value=failed]")
    counted("10 of 60")
    assert shown(tab, "outcome") == {"no success": 10, "success": 0}
    assert sum(shown(tab, "iteration").values()) == 10
    assert tab.problems == []


def test_a_bar_filters_is_in_the_address_and_is_taken_back(many, tab, look, counted):
    look(f"{many}#h=accuracy_0.25_0.2501")
    counted("12 of 60")
    assert chosen(tab, "accuracy") == ["0.25"]
    assert shown(tab, "accuracy")["1"] == 12, "the other bars of a distribution can still be chosen"
    assert shown(tab, "outcome") == {"no success": 2, "success": 10}
    tab.click("[data-name=outcome] .bar:nth-child(1)")
    counted("2 of 60")
    assert "outcome_-1_0" in tab.url
    assert tab.locator("#chosen a").all_inner_texts() == [
        "Accuracy of the task 0.25 ✕",
        "Outcome no success ✕",
    ]
    tab.go_back()
    counted("12 of 60")
    tab.go_forward()
    counted("2 of 60")
    tab.click("#chosen a:nth-of-type(1)")
    counted("10 of 60")
    tab.click("[data-name=outcome] .bar[aria-pressed=true]")
    counted("60 of 60")
    assert tab.is_hidden("#chosen")
    assert tab.problems == []


def test_the_keyboard_moves_along_the_bars_and_chooses_a_range(many, tab, look, counted, settled):
    look(many)
    tab.keyboard.press("h")
    tab.wait_for_selector("[data-name=accuracy] .bar")
    tab.focus("[data-name=accuracy] .bar[tabindex='0']")
    for key, wanted in (("ArrowLeft", "0:"), ("ArrowRight", "0.25:"), ("ArrowRight", "0.5:")):
        tab.keyboard.press(key)
        settled(f"document.activeElement.title.startsWith('{wanted}')")
    said = tab.locator("[data-name=accuracy] .said-of-bar")
    assert said.inner_text() == "0.5: 12 rollouts"
    tab.keyboard.press("Enter")
    counted("12 of 60")
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("Shift+Enter")
    counted("36 of 60")
    assert chosen(tab, "accuracy") == ["0.5", "0.75", "1"]
    assert tab.locator("[data-name=accuracy] .bar[tabindex='0']").count() == 1
    assert tab.problems == []


def test_a_run_without_votes_has_no_bars_of_votes(site, tab, look):
    look(f"{site}/tests/")
    tab.keyboard.press("h")
    tab.wait_for_selector("[data-name=outcome] .bar")
    assert tab.locator("[data-name=vote]").count() == 0
    assert tab.locator("[data-name=reward]").count() == 1


@pytest.mark.parametrize(
    "asked", ["length_1", "nothing_0_1", "constructor_0_1", "vote_a_b", "length_1_2_3", "*_*"]
)
def test_bars_that_are_none_are_left_out(many, tab, look, counted, asked):
    look(f"{many}#h={asked}")
    counted("60 of 60")
    assert tab.problems == []


@pytest.fixture(scope="module")
def ranges(many, browser):
    """The page's own function: ranges, and the place of every value, for lists of values."""
    opened = browser.new_page()
    opened.goto(many)
    opened.wait_for_selector("body[data-shown]", state="attached")
    yield lambda lists: opened.evaluate(RANGES, lists)
    opened.close()


NUMBERS = st.one_of(
    st.integers(-1_000_000, 1_000_000), st.integers(-99_999_999, 99_999_999).map(lambda k: k / 10_000)
)


@settings(deadline=None, max_examples=10)
@example(lists=[[*range(-5, 6), 599_995, -0.0001]])  # close below the edge of a wide bar
@given(lists=st.lists(st.lists(NUMBERS, min_size=1, max_size=60), min_size=10, max_size=20))
def test_every_value_is_in_the_bar_where_it_is_counted(ranges, lists):
    for values, (found, places) in zip(lists, ranges(lists), strict=True):
        assert 1 <= len(found) <= 13
        assert all(low < high for low, high in found)
        assert all(one[1] <= two[0] for one, two in pairwise(found))
        for value, place in zip(values, places, strict=True):
            low, high = found[place]
            assert low <= value < high


def test_a_rollout_on_which_nobody_voted_has_no_mean_vote(server, tab, look):
    """In an arm without votes R is the outcome alone, which a mean vote of 0 would only look like."""
    folder, url = server
    silent = [step(0, str, verdicts=()), step(1, str, verdicts=(None,))]
    tries = [rollout(0, str, steps=silent), rollout(1, str), rollout(2, str, steps=[*silent, step(2, str)])]
    made(folder / "silent", [page(0, [group(0, tries)])])
    look(f"{url}/silent/#h=")
    tab.keyboard.press("h")
    tab.wait_for_selector("[data-name=vote] .bar")
    assert shown(tab, "vote") == {"0.3333": 1, "1": 1, "none": 1}
