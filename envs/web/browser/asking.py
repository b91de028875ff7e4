"""What a page is asked: functions of `play.js`. Texts cross to the page and back.

Playwright would take objects apart into messages with each of their parts, which takes longer than to play.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from envs.web.browser.picture import taken
from envs.web.browser.tabs import Key, Tab, Tabs
from envs.web.browser.view import LONGEST, MOST_ITEMS, BrowserError
from rlanything.core.images import Image

PLAY, PLAYS, ASK, PLACES, UNUSED = "play", "plays", "ask", "places", "unused"
BATCH = 8
"""Episodes that a page plays in one call."""
CALL = "(text) => { const [page, name, asked] = JSON.parse(text); return JSON.stringify(rla.at(page)[name](asked)); }"
Answer = tuple[Any, Image | None]
"""What a page says of an episode, and its picture."""


async def ask(page: Any, kind: str, name: str, asked: Any) -> Any:
    """What a function of `play.js` returns in a page of a kind."""
    return json.loads(await page.evaluate(CALL, json.dumps([f"{kind}.html", name, asked])))


async def read(tab: Tab, keys: Sequence[Key]) -> list[Answer]:
    """What a page answers for episodes that it plays one after the other. Raises `BrowserError` for another number."""
    found: list[Any] = []
    for start in range(0, len(keys), BATCH):
        part = [_asked(key) for key in keys[start : start + BATCH]]
        if len(part) == 1:
            found.append(await ask(tab.page, tab.kind, PLAY, part[0]))
            continue
        answers = await ask(tab.page, tab.kind, PLAYS, part)
        if not isinstance(answers, list) or len(answers) != len(part):
            raise BrowserError(
                f"the page {tab.kind} answered with something that is no list of {len(part)} views"
            )
        found += answers
    return [(answer, None) for answer in found]


async def fresh(tabs: Tabs, tab: Tab, keys: Sequence[Key], screen: tuple[int, int] | None) -> list[Answer]:
    """The same with pictures of `screen`, its width and height; None: without.

    A page in which another episode was played is loaded again. It can keep what its next episode should not show: how
    far something is scrolled, a drawing under another.
    """
    found = []
    for key in keys:
        asked = _asked(key)
        if await ask(tab.page, tab.kind, UNUSED, asked) is not True:
            await tabs.load(tab)
        answer = await ask(tab.page, tab.kind, PLAY, asked)
        found.append((answer, await taken(tab.page, screen) if screen else None))
    return found


def _asked(key: Key) -> dict[str, Any]:
    _, seed, actions = key
    return {"seed": seed, "actions": json.loads(actions), "most": MOST_ITEMS, "longest": LONGEST}
