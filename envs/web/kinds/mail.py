"""Kinds with a mailbox or a wall of posts: the right thing is done to the right person's message."""

from __future__ import annotations

import re

from envs.web.browser.view import Item
from envs.web.kinds.goals import press, rule
from envs.web.kinds.kind import kind
from envs.web.kinds.scene import Scene, click, typing

_FIND = r"Find the email by (?P<sender>.+) and "
_STAR = r"click the (?P<icon>star) icon to mark it as important\."
_TRASH = r"click the (?P<icon>trash) icon to delete it\."
_REPLY = r'reply to them with the text "(?P<text>.+)"\.'
_FORWARD = r"forward that email to (?P<to>.+)\."


def _mail(scene: Scene) -> list[str]:
    """From any view of the mailbox, what leads to the right message and does to it what is asked for."""
    if scene.named("send reply") or scene.named("send forward"):
        return _writing(scene)
    if shut := scene.named("close email"):
        return _reading(scene) if scene.words["sender"] in scene.texts() else [click(i) for i in shut]
    if cancel := scene.named("search cancel"):
        return [click(item) for item in cancel]
    return _inbox(scene)


def _inbox(scene: Scene) -> list[str]:
    """The icon beside the message where one is asked for, else the message."""
    items = scene.view.items
    by = [
        i for i, item in enumerate(items) if item.number and item.name.startswith(scene.words["sender"] + " ")
    ]
    icon = scene.words.get("icon")
    if icon is None:
        return [click(items[i]) for i in by]
    return [click(next(item for item in items[i:] if item.name == icon)) for i in by]


def _one_message(scene: Scene) -> bool:
    """Two messages by one person have different texts, and only one of them is meant to be forwarded."""
    by = [item for item in scene.view.elements if item.name.startswith(scene.words["sender"] + " ")]
    return len(by) == 1


def _reading(scene: Scene) -> list[str]:
    wanted = scene.words.get("icon") or ("Reply" if "text" in scene.words else "Forward")
    return [click(item) for item in scene.named(wanted)]


def _writing(scene: Scene) -> list[str]:
    """In a reply or a forwarded message: its field, then its button. Out of one that is not asked for."""
    form = "reply" if scene.named("send reply") else "forward"
    text = scene.words.get("text" if form == "reply" else "to")
    right = scene.words["sender"] in scene.texts() if form == "reply" else True
    if text is None or not right:
        return [click(item) for item in scene.named(f"close {form}")]
    field = scene.fields()[0]
    return [typing(field, text)] if field.value != text else [click(i) for i in scene.named(f"send {form}")]


_KINDS_OF_MAIL = {
    "email-inbox-delete": (_TRASH,),
    "email-inbox-important": (_STAR,),
    "email-inbox-reply": (_REPLY,),
    "email-inbox-forward": (_FORWARD,),
    "email-inbox-star-reply": (_STAR, _REPLY),
    "email-inbox-noscroll": (_STAR, _TRASH, _REPLY, _FORWARD),
    "email-inbox": (_STAR, _TRASH, _REPLY, _FORWARD),
}


def _asks(parts: tuple[str, ...]) -> str:
    """Any of these: a name of a group can be in a pattern once, so each gets its number, and `_one` takes it away."""
    numbered = [re.sub(r"\?P<(\w+)>", rf"?P<\1_{n}>", part) for n, part in enumerate(parts)]
    return _FIND + f"(?:{'|'.join(numbered)})"


def _one(words: dict[str, str]) -> dict[str, str]:
    return {key.partition("_")[0]: value for key, value in words.items()}


def _posts(scene: Scene) -> list[list[Item]]:
    """The posts by the person, each the items from one name to the next."""
    items = scene.view.items
    heads = {i: item.name for i, item in enumerate(items) if item.number == 0 and item.name.startswith("@")}
    return [post for name, post in scene.blocks(heads) if name == scene.words["user"]]


def _post(scene: Scene) -> list[str]:
    """The button on a post, or the menu that holds it."""
    shown = [
        i for post in _posts(scene) for i in post if i.number and _same(i.name, scene.words["button"], scene)
    ]
    more = [i for post in _posts(scene) for i in post if i.name == "more"]
    return [click(item) for item in shown or more]


def _same(name: str, button: str, scene: Scene) -> bool:
    return name.lower() in (button.lower(), f"{button} {scene.words['user']}".lower())


def _wall(scene: Scene) -> list[str]:
    """The buttons whose state is not as asked; where a number is asked for, any of the person's posts serve."""
    theirs = [i for post in _posts(scene) for i in post if i.name == scene.words["button"].lower()]
    on = [i for i in scene.view.elements if i.state == "selected"]
    wrong = [i for i in on if i not in theirs]
    missing = int(scene.words.get("count", len(theirs))) - (len(on) - len(wrong))
    extra = [i for i in on if i in theirs] if missing < 0 else []
    off = [i for i in theirs if i not in on] if missing > 0 else []
    return [click(item) for item in [*wrong, *extra, *off]]


KINDS = (
    *(
        kind(name, _asks(parts), rule(_mail), derive=_one, clear=_one_message)
        for name, parts in _KINDS_OF_MAIL.items()
    ),
    kind(
        "social-media",
        r'For the user (?P<user>@\w+), click on the "(?P<button>.+)" button\.',
        rule(_post),
    ),
    kind(
        "social-media-all",
        r'Click the "(?P<button>.+)" button on all posts by (?P<user>@\S+) and then click Submit\.',
        rule(_wall),
        press("Submit", "button"),
    ),
    kind(
        "social-media-some",
        r'Click the "(?P<button>.+)" button on (?P<count>\d+) posts? by (?P<user>@\S+) and then click Submit\.',
        rule(_wall),
        press("Submit", "button"),
    ),
)
