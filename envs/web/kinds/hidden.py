"""Kinds whose target is in a tab, a section, a menu or a tree that must be opened first."""

from __future__ import annotations

from itertools import pairwise

from envs.web.browser.view import Item
from envs.web.kinds.goals import press, reveal, rule
from envs.web.kinds.kind import Kind, kind
from envs.web.kinds.scene import Scene, click, hover

_LINK = r'.+ to find and click on the link "(?P<name>.+)"\.'
_PIE = r'Expand the pie menu below and click on the item labeled "(?P<name>.+)"\.'


def _links(scene: Scene) -> list[Item]:
    return [item for item in scene.named("{name}") if item.role == "item"]


def _link(scene: Scene) -> list[str]:
    return [click(item) for item in _links(scene)]


def _search(name: str, *roles: str) -> Kind:
    return kind(name, _LINK, reveal(lambda scene: bool(_links(scene)), *roles), rule(_link))


def _menu(scene: Scene) -> list[str]:
    """Point at the names of the path one after the other, and click the last. A click on another ends the task."""
    *way, last = scene.words["path"].split(">")
    if found := scene.named(last):
        return [click(item) for item in found]
    for name in reversed(way):
        if found := scene.named(name):
            return [hover(item) for item in found]
    return []


def _tree(scene: Scene) -> list[str]:
    """The name where it is in sight, else folders that were not opened; the sign before a name does the same."""
    items = scene.view.items
    pairs = list(pairwise(items))
    if scene.named("{name}"):
        signs = [a for a, b in pairs if a.name == "hitarea" and b.name == scene.words["name"]]
        return [click(item) for item in [*scene.named("{name}"), *signs]]
    folders = [pair for pair in pairs if pair[0].name == "hitarea"]
    shut = [pair for pair in folders if not scene.clicked(pair[0]) and not scene.clicked(pair[1])]
    return [click(item) for pair in shut for item in pair]


def _icons(scene: Scene) -> list[str]:
    """The item where it is in sight, else the parts of the menu that were not pointed at, else the menu."""
    if found := scene.named("{name}"):
        return [click(item) for item in found]
    parts = [item for item in scene.view.elements if item.name != "Menu"]
    return [hover(i) for i in parts if not scene.pointed(i)] or [click(i) for i in scene.named("Menu")]


def _pie(scene: Scene) -> list[str]:
    found = scene.named("{name}", "text")
    return [click(item) for item in found] or [click(item) for item in scene.named("+", "text")]


def _contact(scene: Scene) -> list[str]:
    """What stands behind the label on the page of the right person, else the next page."""
    items = scene.view.items
    if scene.words["name"] in scene.texts():
        label = f"{scene.words['what'].split()[0].capitalize()}:"
        return [click(b) for a, b in pairwise(items) if a.name == label and b.role == "link"]
    return [click(item) for item in scene.named(">", "link")]


KINDS = (
    kind("click-tab", r"Click on (?P<name>Tab #\d+)\.", press("{name}", "link")),
    *(_search(f"click-tab-2{size}", "link") for size in ("-easy", "-medium", "", "-hard")),
    *(
        kind(
            f"click-collapsible{delay}",
            r"Expand the section below and click submit\.",
            reveal(lambda scene: any(i.state == "open" for i in scene.having("tab")), "tab"),
            press("Submit"),
        )
        for delay in ("", "-nodelay")
    ),
    *(_search(f"click-collapsible-2{delay}", "tab") for delay in ("", "-nodelay")),
    kind(
        "navigate-tree",
        r'Navigate through the file tree\. Find and click on the folder or file named "(?P<name>.+)"\.',
        rule(_tree),
    ),
    kind("click-menu", r"Select (?P<path>.+)", rule(_menu), hovers=True),
    kind(
        "click-menu-2",
        r'Click the "Menu" button, and then find and click on the item labeled "(?P<name>.+)"\.',
        rule(_icons),
        hovers=True,
    ),
    *(kind(f"click-pie{delay}", _PIE, rule(_pie)) for delay in ("", "-nodelay")),
    kind(
        "phone-book",
        r"Find (?P<name>.+) in the contact book and click on their (?P<what>.+)\.",
        rule(_contact),
    ),
)
