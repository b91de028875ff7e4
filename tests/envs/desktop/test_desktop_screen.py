"""Accessibility trees: what is listed, what is not, and trees that are too large or no trees."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.computer.actions import Action
from envs.computer.said import said
from envs.desktop.bridge import answers
from envs.desktop.bridge.answers import WorldError
from envs.desktop.play import screen, text

SCREEN = (1000, 500)
HEAD = (
    '<desktop-frame xmlns:st="https://accessibility.ubuntu.example.org/ns/state" '
    'xmlns:cp="https://accessibility.ubuntu.example.org/ns/component">'
)


def node(
    role, name="", at="(10, 20)", size="(30, 10)", inside="", states='st:visible="true" st:showing="true"'
):
    return f'<{role} name="{name}" {states} cp:screencoord="{at}" cp:size="{size}">{inside}</{role}>'


def view(*nodes) -> screen.View:
    return screen.read(HEAD + "".join(nodes) + "</desktop-frame>", SCREEN)


def test_items_are_listed_in_reading_order_with_their_middle():
    found = view(
        node("frame", "Editor", inside=node("push-button", "Save")),
        node(
            "entry", inside="hello&#10;world", states='st:visible="true" st:showing="true" st:focused="true"'
        ),
    )
    assert [item.name for item in found.items] == ["Editor", "Save", ""]
    assert found.element(2) == screen.Item(2, "push-button", "Save", "", "", 24, 24)
    assert found.element(4) is None
    assert text.lines(found)[1:] == ['[2] push-button "Save"', '[3] entry "" value "hello\\nworld" focused']


@pytest.mark.parametrize(
    "left_out",
    [
        node("push-button", "x", states='st:visible="true"'),
        node("push-button", "x", at="(1000, 0)"),
        node("push-button", "x", at="(-40, 0)"),
        node("push-button", "x", size="(0, 10)"),
        node("push-button", "x", at="nonsense"),
        node("panel", "x"),
        node("label"),
    ],
)
def test_what_is_not_in_sight_is_not_listed(left_out):
    assert view(left_out).items == ()


def test_a_tree_of_ten_megabytes_is_read_in_time_and_cut():
    many = node("push-button", "x" * 1000) * 9000
    started = time.monotonic()
    found = view(many)
    assert len(many) > 10_000_000
    assert time.monotonic() - started < 20
    assert len(found.items) == screen.MOST_ITEMS
    assert found.more == 9000 - screen.MOST_ITEMS
    assert max(len(line) for line in text.lines(found)) < 500
    assert len(view(node("push-button", "x") * 30_000).items) == screen.MOST_ITEMS
    assert view(node("entry", inside="y" * 10_000_000)).items[0].value == "y" * screen.LONGEST
    assert len(view(node("x" * 1_000_000, "a")).items[0].role) == screen.LONGEST


def test_what_a_world_has_not_looked_at_is_counted_too():
    saying = HEAD.replace(">", ' left-out="7">')
    buttons = node("push-button", "x") * (screen.MOST_ITEMS + 3)
    assert screen.read(f"{saying}{buttons}</desktop-frame>", SCREEN).more == 3 + 7
    for strange in ("-1", "1" * 10, "²", ""):
        tree = HEAD.replace(">", f' left-out="{strange}">') + "</desktop-frame>"
        assert screen.read(tree, SCREEN).more == 0
    assert view('<label left-out="7"/>').more == 0, "only its root says it"


def test_a_tree_of_any_size_that_an_answer_can_have_is_read():
    many = node("text", inside="x" * 100_000) * 340
    sight = answers.sight({"tree": f"{HEAD}{many}</desktop-frame>"}, SCREEN)
    assert len(sight.tree) > 32 * 2**20
    found = screen.read(sight.tree, SCREEN)
    assert len(found.items) + found.more == 340


@pytest.mark.parametrize(
    "tree",
    [
        "no xml",
        "<a>",
        "<a></b>",
        '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
    ],
)
def test_what_is_no_tree_is_an_error(tree):
    with pytest.raises(WorldError, match="accessibility tree"):
        screen.read(tree, SCREEN)


def test_a_tree_that_is_deep_or_broken_in_its_signs_is_still_read():
    assert screen.read("<a>" * 100_000, SCREEN).items == ()
    assert screen.read("<a b='\ud800'/>", SCREEN).items == ()


@pytest.mark.parametrize("encoding", ["none", "rot13", "big5", "idna", "utf-16", "iso-8859-1"])
def test_a_tree_is_a_text_whatever_encoding_it_declares(encoding):
    head = f'<?xml version="1.0" encoding="{encoding}"?>{HEAD}'
    found = screen.read(f"{head}{node('label', 'ä')}</desktop-frame>", SCREEN)
    assert [item.name for item in found.items] == ["ä"]


@given(st.text())
def test_any_text_is_a_view_or_an_error(tree):
    with contextlib.suppress(WorldError):
        assert isinstance(screen.read(tree, SCREEN), screen.View)


def test_no_tree_is_an_empty_view():
    assert screen.read("", SCREEN) == screen.View()


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (Action("click", x=1, y=2), "You clicked (1, 2)."),
        (Action("click", x=1, y=2, button=2), "You right-clicked (1, 2)."),
        (Action("click", times=2), "You double-clicked."),
        (Action("type", text='a\n[1] button "x"'), 'You typed "a\\n[1] button \\"x\\"".'),
        (Action("chord", keys=("ctrl", "s")), 'You pressed "ctrl+s".'),
        (Action("let_go", keys=("shift",)), 'You let go of "shift".'),
        (Action("scroll", dy=30), "You scrolled down."),
        (Action("scroll", dx=30, x=3, y=4), "You scrolled sideways at (3, 4)."),
        (Action("scroll"), "You scrolled by 0."),
        (Action("drag", x=3, y=4), "You dragged to (3, 4)."),
        (Action("move", x=3, y=4), "You hovered over (3, 4)."),
        (Action("down"), "You pressed the mouse."),
        (Action("type", text="a\u2028b"), 'You typed "a\\u2028b".'),
        (Action("wait", wait=10), "You waited."),
    ],
)
def test_what_was_done_is_said(action, words):
    assert said(action, None) == words
