"""Kinds with boxes to check and options to choose, and a button at the end."""

from __future__ import annotations

from envs.web.kinds.goals import both, choose, choose_nth, fill, press, rule, tick
from envs.web.kinds.kind import kind
from envs.web.kinds.scene import Scene, click
from envs.web.kinds.synonyms import GROUPS


def _similar(scene: Scene) -> list[str]:
    """The boxes whose state is not as the words that are asked for, or their synonyms, want it."""
    asked = scene.words["names"].split(", ")
    alike = {word for group in GROUPS if group & set(asked) for word in group} | set(asked)
    return [click(i) for i in scene.having("checkbox") if (i.name in alike) != (i.state == "checked")]


_BOXES = r"Select (?P<names>.+) and click Submit\."
_TICKED = tick("{names}", "checkbox"), press("Submit", "button")
KINDS = (
    kind(
        "click-option", r"Select (?P<name>.+) and click Submit\.", choose("{name}", "radio"), press("Submit")
    ),
    kind("click-checkboxes", _BOXES, *_TICKED),
    kind("click-checkboxes-transfer", _BOXES, *_TICKED),
    kind("click-checkboxes-large", _BOXES, *_TICKED),
    kind(
        "click-checkboxes-soft",
        r"Select words similar to (?P<names>.+) and click Submit\.",
        rule(_similar),
        press("Submit"),
    ),
    kind(
        "choose-list",
        r"Select (?P<name>.+) from the list and click Submit\.",
        choose("{name}", "option"),
        press("Submit"),
    ),
    kind(
        "click-scroll-list",
        r"Select (?P<names>.+) from the scroll list and click Submit\.",
        tick("{names}", "option"),
        press("Submit"),
    ),
    kind(
        "form-sequence-2",
        r'Check the (?P<radio>\w+) radio button and enter the number "(?P<text>.+)" into the (?P<place>\w+) textbox\.',
        both(choose_nth("{radio}", "radio"), fill("{text}", "{place}")),
        press("Submit"),
        strict=True,  # the page takes any radio button
    ),
    kind(
        "form-sequence-3",
        r'Choose (?P<name>.+) from the dropdown, then click the button labeled "(?P<button>.+)"\.',
        choose("{name}", "option"),
        press("{button}", "button"),
    ),
)
