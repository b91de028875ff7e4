"""Keys on a page: they do what a browser does for real ones, in a page of our own."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest
from web_cases import at_start, evaluate, forget

from envs.computer import reply
from envs.computer.actions import Action
from envs.computer.keyboard import PAGE
from envs.computer.tool_calls import TYPES
from envs.web.browser.launch import SCREEN
from envs.web.browser.pool import Pool, Settings

SEEDS = count()


@pytest.fixture(scope="module")
def ours():
    """One browser for all of these tests, with our own pages."""
    made = Pool(Settings(pages=str(Path(__file__).parent / "pages")))
    yield made
    made.close()


class Page:
    """The page `keys` of our own, with actions that are said as a model says them. They go on from each other."""

    def __init__(self, pool) -> None:
        self.pool, self.seed, self.made = pool, str(next(SEEDS)), []
        self.does()

    def does(self, *said: str) -> None:
        """Perform what these replies say."""
        for text in said:
            action = reply.read(text, SCREEN, PAGE)
            assert isinstance(action, Action), text
            self.made.append(action.to_json())
        self.view = self.pool.play("keys", self.seed, self.made)

    def at(self, name: str) -> None:
        """Focus an element, the caret at its end."""
        script = "name => { const e = document.getElementById(name); e.focus(); rla.keys.caret(e); }"
        evaluate(self.pool, "keys", script, name)

    def has(self, name: str, what: str = "value"):
        """A property of an element."""
        return evaluate(self.pool, "keys", f"name => document.getElementById(name).{what}", name)

    @property
    def focus(self) -> str:
        """The id of what has the focus."""
        return evaluate(self.pool, "keys", "() => document.activeElement.id")

    @property
    def said(self) -> list[str]:
        """What the page heard."""
        return self.has("said", "textContent").split()


@pytest.fixture
def page(ours):
    return Page(ours)


@pytest.mark.parametrize(
    ("field", "keys", "value"),
    [
        ("name", ["press c", "press D"], "abcD"),
        ("name", ["press shift+c"], "abC"),
        ("name", ["press shift+1"], "ab!"),
        ("name", ["press space", "press @"], "ab @"),
        ("name", ["press backspace"], "a"),
        ("name", ["press left", "press c"], "acb"),
        ("name", ["press home", "press delete"], "b"),
        ("name", ["press home", "press end", "press c"], "abc"),
        ("name", ["press shift+left", "press c"], "ac"),
        ("name", ["press ctrl+a", "press c"], "c"),
        ("name", ["press ctrl+a", "press delete"], ""),
        ("name", ["press ctrl+a", "press ctrl+c", "press end", "press ctrl+v"], "abab"),
        ("name", ["press ctrl+a", "press ctrl+x", "press c", "press ctrl+v"], "cab"),
        ("name", ["type 0 cdefgh"], "abcdef"),
        ("name", ["press ctrl+b", "press alt+b", "press escape", "press pagedown"], "ab"),
        ("closed", ["press c", "press backspace", "press ctrl+a", "press ctrl+v"], "x"),
        ("long", ["press a", "press enter", "type 0 b c"], "a\nb c"),
        ("long", ["type 0 a\nb"], "a\nb"),
        ("count", ["type 0 -12", "press up"], "-11"),
        ("day", ["type 0 10/02/2016"], "2016-10-02"),
        ("strict", ["press x", "press y"], "y"),
        ("list", ["press down", "press up", "press down"], "bread"),
        ("list", ["press b", "press b"], "butter"),
        ("list", ["type 0 bu"], "butter"),
    ],
)
def test_a_key_edits_what_has_the_focus(page, field, keys, value):
    page.at(field)
    page.does(*keys)
    assert page.has(field) == value


def test_a_place_may_be_named_where_a_text_is_typed(page):
    box = page.has("name", "getBoundingClientRect().toJSON()")
    place = {"x": int(box["x"]) + 5, "y": int(box["y"]) + 5}
    page.does(json.dumps({"action_type": "TYPING", "text": "c", **place}))
    assert page.has("name") == "abc"


def test_modifiers_stay_down_until_they_are_let_go(page):
    page.at("strict")
    page.does(
        '{"action_type": "KEY_DOWN", "key": "shift"}', "press a", '{"action_type": "TYPING", "text": "b"}'
    )
    page.does('{"action_type": "KEY_UP", "key": "shift"}', '{"action_type": "HOTKEY", "keys": ["a", "b"]}')
    assert page.has("strict") == "Abab"
    assert page.said == ["up:A+shift", "up:b", "up:Shift", "up:b", "up:a"]


def test_tab_goes_from_stop_to_stop_and_back(page):
    seen = []
    for _ in range(13):
        page.does("press tab")
        seen.append(page.focus)
        if page.focus == "strict":  # which keeps the tab for itself
            page.at("day")
    assert seen == [
        "name", "closed", "box", "r1", "count", "", "long", "list", "go", "link", "strict", "name", "closed",
    ]  # fmt: skip
    page.does("press shift+tab", "press a")
    assert page.has("name") == "a", "its text was selected"


def test_enter_in_a_field_of_a_form_submits_it_and_tells_of_the_change_first(page):
    page.at("name")
    page.does("press c", "press enter")
    assert page.said == ["change:name", "submit"]
    assert evaluate(page.pool, "keys", "() => location.hash") == ""


def test_a_change_is_told_when_a_field_loses_the_focus(page):
    page.at("strict")
    page.does("press y")
    page.at("long")
    page.does("press a", "press tab")
    assert [word for word in page.said if word.startswith("change")] == ["change:strict", "change:long"]


def test_space_ticks_and_presses_and_enter_presses_and_follows(page):
    for name, key in [("box", "space"), ("go", "space"), ("go", "enter"), ("link", "enter"), ("r2", "space")]:
        page.at(name)
        page.does(f"press {key}")
    assert page.said == [
        "click:box",
        "change:box",
        "click:go",
        "click:go",
        "click:link",
        "click:r2",
        "change:r2",
    ]
    assert page.has("box", "checked")
    page.does("press up")
    assert (page.has("r1", "checked"), page.focus) == (True, "r1")


def test_what_was_held_copied_and_selected_is_gone_in_the_next_episode(page):
    page.at("name")
    page.does("press ctrl+a", "press ctrl+c", '{"action_type": "KEY_DOWN", "key": "shift"}')
    page.pool.play("keys", "another", [])
    page.at("long")
    forget(page.pool)
    after = [reply.read(text, SCREEN, PAGE).to_json() for text in ("press ctrl+v", "press a")]
    page.pool.play("keys", "another", after)
    assert page.has("long") == "a"


def test_keys_work_in_a_page_that_another_one_covers(page):
    page.pool.play("plain", "1", [])
    page.at("name")
    page.does("press c", "press tab")
    assert (page.has("name"), page.focus) == ("abc", "closed")


@pytest.mark.parametrize("kind", [kind for kind in TYPES if kind not in ("DONE", "FAIL")])
def test_a_page_performs_every_action_of_computer_13(page, kind):
    given = {"TYPING": {"text": "a"}, "HOTKEY": {"keys": ["ctrl", "a"]}, "SCROLL": {"dy": 9}}
    needs = {"MOVE_TO": {"x": 9, "y": 9}, "DRAG_TO": {"x": 9, "y": 9}, **given}
    keys = {name: {"key": "shift"} for name in ("PRESS", "KEY_DOWN", "KEY_UP")}
    page.does(json.dumps({"action_type": kind, **{**needs, **keys}.get(kind, {})}))
    assert not page.view.failed


def test_keys_that_a_page_does_not_have_are_refused(pool):
    episode = at_start(pool, "enter-text", "1")
    for said in (
        "press f5",
        "press insert",
        "press capslock",
        '{"action_type": "HOTKEY", "keys": ["super", "l"]}',
    ):
        assert episode.step(said).startswith("You did nothing: ")
