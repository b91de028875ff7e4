"""Kinds with one click, or a few, on something that is in sight."""

from __future__ import annotations

from envs.web.browser.view import Item
from envs.web.kinds.goals import press, press_nth, rule
from envs.web.kinds.kind import Words, kind, nothing
from envs.web.kinds.scene import Scene, click

WIDGETS = {"text": "textbox"}
SHAPES = {"rect": "Rectangle", "circle": "Circle", "polygon": "Triangle"}


def _widget(scene: Scene) -> list[str]:
    """A widget is a box around an input; a click on either counts."""
    items, wanted = scene.view.items, scene.words["role"]
    found = [i for i, item in enumerate(items) if item.role == WIDGETS.get(wanted, wanted)]
    boxes = [items[i - 1] for i in found if i and items[i - 1].name == "widget"]
    return [click(item) for item in [*(items[i] for i in found), *boxes]]


def _shape(scene: Scene) -> list[str]:
    figures = [item for item in scene.view.elements if item.role != "button"]
    return [click(item) for figure in figures[:1] for item in scene.named(_called(figure), "button")]


def _called(figure: Item) -> str:
    if figure.role == "text":
        return "Number" if figure.name.isdigit() else "Letter"
    return SHAPES.get(figure.role, "")


def _parity(scene: Scene) -> list[str]:
    """Of the two buttons around each number, the right one, until it is selected."""
    items = scene.view.items
    wanted = []
    for before, item, after in zip(items, items[1:], items[2:], strict=False):
        if before.name == "Odd" and after.name == "Even":
            right = before if int(item.name) % 2 else after
            wanted += [] if right.state == "selected" else [click(right)]
    return wanted


def _place(words: Words) -> Words:
    return {"name": "Close" if words["name"] == "x" else words["name"]}


KINDS = (
    kind("click-test", r"Click the button\.", press("", "button")),
    kind("click-test-2", r"Click button ONE\.", press("ONE")),
    kind("click-test-transfer", r"Click button ONE\.", press("ONE")),
    kind("click-button", r'Click on the "(?P<name>.+)" button\.', press("{name}", "button")),
    kind("unicode-test", r'Click on the "(?P<name>.+)" button\.', press("{name}", "button")),
    kind("click-button-sequence", r"Click button ONE, then click button TWO\.", press("ONE"), press("TWO")),
    kind("click-dialog", r'Close the dialog box by clicking the "x"\.', press("Close")),
    kind(
        "click-dialog-2",
        r'Click the button in the dialog box labeled "(?P<name>.+)"\.',
        press("{name}", "button"),
        derive=_place,
    ),
    kind("click-link", r'Click on the link "(?P<name>.+)"\.', press("{name}")),
    kind("click-widget", r'Click on a "(?P<role>\w+)" widget\.', rule(_widget)),
    kind("identify-shape", r"Click the button that best describes the figure below\.", rule(_shape)),
    kind(
        "odd-or-even",
        r"Mark the numbers below as odd or even and press submit when done\.",
        rule(_parity),
        press("Submit"),
    ),
    kind("grid-coordinate", r"Click on the grid coordinate (?P<at>\(.+\))\.", press("{at}", "circle")),
    # A text that is typed moves the focus too.
    kind("focus-text", r"Focus into the textbox\.", press("", "textbox"), texts=nothing),
    kind(
        "focus-text-2",
        r"Focus into the (?P<place>\w+) input textbox\.",
        press_nth("{place}", "textbox"),
        texts=nothing,
    ),
)
