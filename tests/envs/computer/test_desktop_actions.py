"""What an agent can do on a desktop: keys that stay down, Qwen's tool, and tool calls inside replies."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.computer import computer_use, reply, tool_calls
from envs.computer.actions import Action, Refusal, untypable
from envs.computer.calls import calls
from envs.computer.computer_use import Computer
from envs.computer.keyboard import DESKTOP, PAGE
from envs.computer.turns import paired
from rlanything.core.types import Task

SCREEN = (1920, 1080)

DONE = '{"action_type": "DONE"}'
QWEN = '{"name": "computer_use", "arguments": {"action": "wait"}}'


def use(action: str, **arguments) -> Action | Refusal:
    text = json.dumps({"name": "computer_use", "arguments": {"action": action, **arguments}})
    return reply.read(f"Action: go on.\n<tool_call>\n{text}\n</tool_call>", SCREEN)


def call(kind: str, **parameters) -> Action | Refusal:
    return reply.read(json.dumps({"action_type": kind, **parameters}), SCREEN)


@pytest.mark.parametrize(
    ("found", "action"),
    [
        (use("left_click", coordinate=[0, 999]), Action("click", x=0, y=1079)),
        (use("left_click", coordinate=[500, 500]), Action("click", x=960, y=540)),
        (use("left_click"), Action("click")),
        (use("right_click", coordinate=[1000, 1]), Action("click", x=1919, y=1, button=2)),
        (use("triple_click"), Action("click", times=3)),
        (use("mouse_move", coordinate=[999, 0]), Action("move", x=1919, y=0)),
        (use("left_click_drag", coordinate=[1, 1]), Action("drag", x=1, y=1)),
        (use("type", text="'); import os #"), Action("type", text="'); import os #")),
        (use("key", keys=["ctrl", "s"]), Action("chord", keys=("ctrl", "s"))),
        (use("key", keys=["Return"]), Action("press", keys=("enter",))),
        (use("key", keys=" esc "), Action("press", keys=("escape",))),
        (use("scroll", pixels=-5), Action("scroll", dy=75)),
        (use("hscroll", pixels=2), Action("scroll", dx=30)),
        (use("wait", time=2), Action("wait", wait=2000)),
        (use("scroll", pixels=-500), Action("scroll", dy=4995)),
        (use("scroll", pixels=1e400), Action("scroll", dy=-4995)),
        (use("scroll", pixels=10**400), Action("scroll", dy=-4995)),
        (use("hscroll", pixels=-500), Action("scroll", dx=-4995)),
        (use("wait", time=60), Action("wait", wait=10_000)),
        (use("wait", time=-1), Action("wait")),
        (use("type", text="x" * 2000), Action("type", text="x" * 2000)),
        (use("type", text="é" * 500 + "\n" * 1500), Action("type", text="é" * 500 + "\n" * 1500)),
        (use("key", keys=["ctrl+s"]), Action("chord", keys=("ctrl", "s"))),
        (use("key", keys="Ctrl + Shift + S"), Action("chord", keys=("ctrl", "shift", "s"))),
        (use("key", keys=["ctrl++"]), Action("chord", keys=("ctrl", "+"))),
        (use("key", keys=["+"]), Action("press", keys=("+",))),
        (use("key", keys=["ctrl", "+"]), Action("chord", keys=("ctrl", "+"))),
        (use("terminate", status="success"), Action("done")),
        (use("terminate", status="failure"), Action("fail")),
        (call("HOTKEY", keys=["ctrl", "s"]), Action("chord", keys=("ctrl", "s"))),
        (call("KEY_DOWN", key="shift"), Action("hold", keys=("shift",))),
        (call("KEY_UP", key="shift"), Action("let_go", keys=("shift",))),
        (call("PRESS", key="pagedown"), Action("press", keys=("pagedown",))),
        (reply.read("press ctrl+s", SCREEN), Action("chord", keys=("ctrl", "s"))),
        (reply.read("press enter", SCREEN), Action("press", keys=("enter",))),
        (reply.read("click 3", SCREEN), Action("click", 3)),
        (reply.read("press ctrl+S", SCREEN), Action("chord", keys=("ctrl", "s"))),
        (reply.read("press ctrl+shift+S", SCREEN), Action("chord", keys=("ctrl", "shift", "s"))),
        (reply.read("press S", SCREEN), Action("press", keys=("S",))),
        (reply.read("press ctrl++", SCREEN), Action("chord", keys=("ctrl", "+"))),
        (reply.read("Press ctrl+s.", SCREEN), Action("chord", keys=("ctrl", "s"))),
        (reply.read(f"```json\n{DONE}\n```", SCREEN), Action("done")),
        (reply.read(f"```{DONE}```", SCREEN), Action("done")),
        (reply.read("Type the name:\n```\ntype 3 a\n```", SCREEN), Action("type", 3, text="a")),
        (reply.read("I click it.\n```\nclick 3\n```\n", SCREEN), Action("click", 3)),
        (reply.read("First\n```\nclick 3\n```\nno, rather\n```\nclick 4\n```", SCREEN), Action("click", 4)),
        (reply.read(f"The folder is there, so I end it. {DONE}", SCREEN), Action("done")),
        (reply.read(f'{DONE[:-1]}, "parameters": {{}}}}', SCREEN), Action("done")),
        (reply.read(f"So: {QWEN}", SCREEN), Action("wait", wait=1000)),
        (reply.read(f"type 3 {DONE}", SCREEN), Action("type", 3, text=DONE)),
        (reply.read("type 3 ```\nclick 3\n```", SCREEN), Action("type", 3, text="```\nclick 3\n```")),
    ],
)
def test_a_desktop_reads_them(found, action):
    assert found == action


@pytest.mark.parametrize(
    "found",
    [
        use("left_click", coordinate=[1001, 0]),
        use("left_click", coordinate=[True, 0]),
        use("left_click", coordinate="1,2"),
        use("mouse_move"),
        use("type", text=3),
        use("type", text="half \ud83d"),
        use("type", text="a\0b"),
        call("TYPING", text="a\x1bb"),
        reply.read("type 0 a\x7fb", SCREEN),
        use("key", keys=[]),
        use("key", keys=["nokey"]),
        use("key", keys=["ctrl+nokey"]),
        use("key", keys=["ctrl+"]),
        use("key", keys=["ctrl+s", "enter"]),
        use("type", text="x" * 2001),
        use("type", text="é" * 501),
        use("type", text="".join(chr(0x4E00 + place) for place in range(101))),
        use("wait", time="60"),
        use("wait", time=True),
        use("scroll"),
        use("scroll", pixels=float("nan")),
        use("screenshot"),
        reply.read('<tool_call>{"name": "computer_use"}</tool_call>', SCREEN),
        reply.read("<tool_call>{}</tool_call><tool_call>{}</tool_call>", SCREEN),
        reply.read("{" * 5000, SCREEN),
        reply.read("eval 1", SCREEN),
        reply.read(f"{DONE} {DONE}", SCREEN),
        reply.read(f"Either {DONE} or {DONE}", SCREEN),
        reply.read(f"{{a brace}} {DONE}", SCREEN),
        reply.read(f'So {{"thought": {DONE}', SCREEN),
        reply.read(f'So {{"thought": {DONE}}}', SCREEN),
        reply.read("I would click 3", SCREEN),
        reply.read("```\nclick 3\nclick 4\n```", SCREEN),
        reply.read("So " + '{"a":' * 4000, SCREEN),
    ],
)
def test_others_are_refused_with_a_reason(found):
    assert isinstance(found, Refusal)
    assert found.reason.endswith(".")


def test_a_page_has_fewer_keys_than_a_desktop():
    assert set(PAGE.names) < set(DESKTOP.names)
    assert (PAGE.key("Control"), PAGE.key("super"), PAGE.key("f5")) == ("ctrl", None, None)
    assert (DESKTOP.key("Control"), DESKTOP.key("win")) == ("ctrl", "super")


def test_a_wheel_counts_notches_on_a_desktop_and_pixels_on_a_page():
    asked = {"action_type": "SCROLL", "dy": -3}
    assert tool_calls.read(asked, PAGE) == Action("scroll", dy=-3)
    assert tool_calls.read(asked, DESKTOP) == Action("scroll", dy=45)


@given(st.text())
def test_any_reply_is_read_or_refused(text):
    assert isinstance(reply.read(text, SCREEN), Action | Refusal)


PROSE = st.text(st.characters(exclude_characters="{}`<", exclude_categories=["Cs"]), max_size=40)


@given(PROSE, PROSE, st.sampled_from(["alone", "words", "fence", "tags"]), st.integers(0, 2000))
def test_one_action_among_words_is_that_action(before, after, form, x):
    made = json.dumps({"action_type": "CLICK", "x": x, "y": 1})
    before = f"So {before}"  # a short text would be one itself
    said = {
        "alone": made,
        "words": f"{before}{made}{after}",
        "fence": f"{before}\n```json\n{made}\n```\n{after}",
        "tags": f"{before}<tool_call>{made}</tool_call>{after}",
    }[form]
    assert reply.read(said, SCREEN) == Action("click", x=x, y=1)
    assert isinstance(reply.read(f"{before}{made}{after}{made}", SCREEN), Refusal)


VALUES = (
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.text(max_size=6)
    | st.lists(st.integers(), max_size=3)
)


@given(
    st.sampled_from([*computer_use.ACTIONS, "x"]),
    st.dictionaries(st.sampled_from(["coordinate", "text", "keys", "pixels", "time", "status"]), VALUES),
)
def test_any_arguments_are_read_or_refused_and_places_lie_on_the_screen(action, arguments):
    found = computer_use.read({"arguments": {"action": action, **arguments}}, Computer(SCREEN, DESKTOP))
    assert isinstance(found, Action | Refusal)
    if isinstance(found, Action) and found.x is not None:
        assert 0 <= found.x < SCREEN[0]
        assert 0 <= (found.y or 0) < SCREEN[1]


def test_the_actions_of_a_task_are_for_its_episodes_in_order():
    a, b = Task("desktop", "a", {}), Task("desktop", "b", {})
    running = [(a.task_id, "a1"), (b.task_id, "b1"), (a.task_id, "a2")]
    assert list(paired(running, [(a, "x"), (b, "y"), (a, "z")])) == [("a1", "x"), ("a2", "z"), ("b1", "y")]
    assert list(paired(running, [(a, "x"), (b, "y")])) == [("b1", "y")]


TYPED = st.text(max_size=20).filter(lambda text: not untypable(text))
PLACES = {"x": st.integers(0, 5000), "y": st.integers(0, 5000)}
KEYS = st.lists(st.sampled_from([*DESKTOP.names, "a", "'", "\\", "<"]), min_size=1, max_size=3).map(tuple)
ONE_CALL = st.one_of(
    st.builds(Action, st.just("click"), button=st.integers(0, 2), times=st.integers(1, 3), **PLACES),
    st.builds(Action, st.just("move"), **PLACES),
    st.builds(Action, st.just("drag"), **PLACES),
    st.builds(Action, st.sampled_from(["down", "up"]), button=st.integers(0, 2)),
    st.builds(Action, st.just("scroll"), dy=st.integers(-300, 300).map(lambda n: 15 * n)),
    st.builds(Action, st.just("type"), text=TYPED),
    st.builds(Action, st.just("chord"), keys=KEYS),
    st.builds(Action, st.sampled_from(["press", "hold", "let_go"]), keys=KEYS.map(lambda keys: keys[:1])),
    st.builds(Action, st.just("wait"), wait=st.integers(0, 10).map(lambda n: 1000 * n)),
    st.builds(Action, st.sampled_from(["done", "fail"])),
)


@given(ONE_CALL)
def test_a_call_is_read_back(action):
    assert [tool_calls.read(call, DESKTOP) for call in calls(action)] == [action]


@pytest.mark.parametrize("said", ["wait", '{"action_type": "WAIT"}', QWEN])
def test_a_wait_that_does_not_say_how_long_it_is_lasts_a_second(said):
    action = reply.read(said, SCREEN)
    assert isinstance(action, Action)
    assert calls(action) == [{"action_type": "WAIT", "seconds": 1.0}]


def test_an_action_may_be_several_calls():
    assert [call["action_type"] for call in calls(Action("type", x=1, y=2, text="a"))] == ["CLICK", "TYPING"]
    assert [call["action_type"] for call in calls(Action("scroll", x=1, y=2, dy=15))] == ["MOVE_TO", "SCROLL"]
    assert [call["key"] for call in calls(Action("press", keys=("a", "b")))] == ["a", "b"]
