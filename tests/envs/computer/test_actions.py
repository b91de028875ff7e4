"""Actions: two ways to write them, one type, and refusals instead of exceptions."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.computer import reply, short, tool_calls
from envs.computer.actions import LONGEST_TEXT, Action, Refusal, untypable
from envs.computer.keyboard import PAGE

COMPUTER_13 = (
    "MOVE_TO CLICK MOUSE_DOWN MOUSE_UP RIGHT_CLICK DOUBLE_CLICK DRAG_TO SCROLL TYPING PRESS KEY_DOWN KEY_UP HOTKEY "
    "WAIT FAIL DONE"
)


def read(text: str) -> Action | Refusal:
    return reply.read(text, (1920, 1080), PAGE)


def call(kind: str, **parameters) -> Action | Refusal:
    return read(json.dumps({"action_type": kind, **parameters}))


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("click 12", Action("click", 12)),
        ("Click 12", Action("click", 12)),
        ("CLICK 12.", Action("click", 12)),
        ("Type 5 Hello.", Action("type", 5, text="Hello.")),
        ("Press Enter.", Action("press", keys=("enter",))),
        ("press .", Action("press", keys=(".",))),
        ("press +", Action("press", keys=("+",))),
        ("press down++", Action("chord", keys=("down", "+"))),
        ("Scroll 3 Down", Action("scroll", 3, dy=100)),
        ("Done.", Action("done")),
        (" double 3 ", Action("click", 3, times=2)),
        ("right 3", Action("click", 3, button=2)),
        ("hover 3", Action("move", 3)),
        ("type 5 hello  there", Action("type", 5, text="hello  there")),
        ("type 5", Action("type", 5)),
        ("press enter", Action("press", keys=("enter",))),
        ("press ArrowDown+A", Action("chord", keys=("down", "a"))),
        ("scroll 3 down", Action("scroll", 3, dy=100)),
        ("wait", Action("wait", wait=1000)),
        ("Wait.", Action("wait", wait=1000)),
        ("done", Action("done")),
    ],
)
def test_a_short_text_is_an_action(text, action):
    assert short.parse(text) == action


@pytest.mark.parametrize(
    "text",
    [
        "",
        "click",
        "click x",
        "click 12 13",
        "click -1",
        "click ١",
        "type x",
        "press",
        "press nokey",
        "scroll 1 left",
        "click 99999",
        "type 5.",
        "click 3..",
        "press ctrl+",
        f"type 5 {'x' * (LONGEST_TEXT + 1)}",
        "type 5 half \ud83d",
        "type 5 a\0b",
        "type 5 a\x1b[2Jb",
        "press " + "+".join("abcdefghi"),
        "eval 1",
    ],
)
def test_what_is_no_action_is_refused_with_a_reason(text):
    found = short.parse(text)
    assert isinstance(found, Refusal)
    assert found.reason.endswith(".")


@pytest.mark.parametrize(
    "text", ["type hello", "Type the name into field 3.", "type 5: hello", "type 99999 x"]
)
def test_typing_without_a_number_is_refused_with_the_form_that_has_one(text):
    assert short.parse(text) == Refusal(
        "type needs a number before the text, 0 for where the focus is: type N TEXT."
    )


def test_all_action_types_of_osworld_are_known():
    assert list(tool_calls.TYPES) == COMPUTER_13.split()


@pytest.mark.parametrize(
    ("found", "action"),
    [
        (call("CLICK", x=10, y=20), Action("click", x=10, y=20)),
        (
            call("CLICK", parameters={"x": 10.0, "y": 20, "button": "right"}),
            Action("click", x=10, y=20, button=2),
        ),
        (call("CLICK"), Action("click")),
        (call("DOUBLE_CLICK", element=4), Action("click", 4, times=2)),
        (call("MOVE_TO", x=1, y=2), Action("move", x=1, y=2)),
        (call("DRAG_TO", element=7), Action("drag", 7)),
        (call("DRAG_TO", x=1, y=2), Action("drag", x=1, y=2)),
        (call("SCROLL", dx=0, dy=-10), Action("scroll", dy=-10)),
        (call("TYPING", text="a'); alert(1) //"), Action("type", text="a'); alert(1) //")),
        (call("PRESS", key="Enter"), Action("press", keys=("enter",))),
        (call("TYPING", text="a", element=3), Action("type", 3, text="a")),
        (call("TYPING", text="a", x=1, y=2), Action("type", x=1, y=2, text="a")),
        (call("HOTKEY", keys=["a", "escape"]), Action("chord", keys=("a", "escape"))),
        (call("KEY_DOWN", key="shift"), Action("hold", keys=("shift",))),
        (call("KEY_UP", key="shift"), Action("let_go", keys=("shift",))),
        (call("WAIT"), Action("wait", wait=1000)),
        (call("DONE"), Action("done")),
        (read('{"name": "CLICK", "arguments": {"x": 1, "y": 2}}'), Action("click", x=1, y=2)),
    ],
)
def test_a_tool_call_is_an_action(found, action):
    assert found == action


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "1",
        "{",
        "null",
        '{"action_type": "EXEC"}',
        '{"action_type": ["CLICK"]}',
        '{"action_type": "CLICK", "x": 1}',
        '{"action_type": "CLICK", "x": NaN, "y": 1}',
        '{"action_type": "CLICK", "x": 1e9, "y": 1}',
        "[" * 3000,
        '{"action_type": ' + "[" * 3000,
        '{"action_type": "CLICK", "x": true, "y": 1}',
        '{"action_type": "TYPING", "text": 3}',
        '{"action_type": "TYPING", "text": "a", "x": 1}',
        '{"action_type": "TYPING", "text": "half \\ud83d"}',
        '{"action_type": "TYPING", "text": "a\\u0000b"}',
        '{"action_type": "TYPING", "text": "a\\u0085b"}',
        " " * 5000,
        '{"action_type": "WAIT"' + " " * 10_000 + "}",
        '{"action_type": "PRESS", "key": {}}',
        '{"action_type": "CLICK", "parameters": 3}',
        '{"action_type": "MOVE_TO"}',
        '{"action_type": "CLICK", "x": 1, "y": 1, "button": []}',
        '{"action_type": "HOTKEY", "keys": []}',
        '{"action_type": "PRESS", "key": "f5"}',
    ],
)
def test_a_wrong_tool_call_is_refused_with_a_reason(text):
    found = read(text)
    assert isinstance(found, Refusal)
    assert found.reason.endswith(".")


@given(st.text())
def test_any_text_is_read_or_refused(text):
    for parse in (short.parse, read):
        assert isinstance(parse(text), Action | Refusal)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.sampled_from(list(tool_calls.TYPES)),
    st.dictionaries(
        st.sampled_from(
            ["x", "y", "dx", "dy", "button", "text", "key", "keys", "element", "num_clicks", "seconds"]
        ),
        JSON,
    ),
)
def test_any_parameters_are_read_or_refused(kind, parameters):
    found = call(kind, **parameters)
    assert isinstance(found, Action | Refusal)
    if isinstance(found, Action):
        assert json.loads(json.dumps(found.to_json())) == found.to_json()
        assert set(found.keys) <= {*PAGE.names, *(key for key in found.keys if len(key) == 1)}


ON_ELEMENTS = st.builds(
    Action,
    st.sampled_from(["click", "move", "scroll", "drag", "type"]),
    st.integers(0, 9999),
    x=st.none() | st.integers(0, 9),
    button=st.integers(0, 2),
    times=st.integers(1, 3),
    dy=st.integers(-1, 1),
)


@given(ON_ELEMENTS)
def test_an_action_without_a_short_text_passes_for_no_other(action):
    spelled = short.spell(action)
    if action.kind != "type" and spelled:
        assert short.parse(spelled) == replace(action, dy=0)
    if (action.button, action.times, action.x) != (0, 1, None) and action.kind == "move":
        assert spelled == ""
    if action.button == 1 or action.times == 3 or action.kind in ("scroll", "drag"):
        assert action.kind == "type" or spelled == ""


@given(st.integers(1, 9999), st.text(max_size=LONGEST_TEXT))
def test_an_action_is_read_back_from_its_text(number, text):
    assert short.parse(short.spell(Action("click", number))) == Action("click", number)
    typed = Action("type", number, text=text)
    if untypable(text):
        assert isinstance(short.parse(f"type {number} x{text}x"), Refusal)
    elif text == text.rstrip():  # what surrounds a reply is cut off
        assert short.parse(short.spell(typed)) == typed


@pytest.mark.parametrize("sign", [*map(chr, range(32)), "\x7f", "\x85", "\x9f"])
def test_control_characters_are_refused_and_line_breaks_and_tabs_are_typed(sign):
    found = call("TYPING", text=f"a{sign}b")
    if sign in "\n\t":
        assert found == Action("type", text=f"a{sign}b")
    else:
        assert found == Refusal(f"no keyboard types the control character U+{ord(sign):04X}.")
