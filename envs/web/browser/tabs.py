"""The open pages of a browser, and which of them plays which episode.

A page goes on with the episode that it has played last, and plays every other one from its start. So a kind of tasks
that is played by several episodes at the same time gets several pages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs.web.browser.view import BrowserError

Key = tuple[str, str, str]
"""An episode until now: its kind, its seed, and its actions as a list of objects in JSON."""
LANES = 8
"""The most pages of a kind."""


@dataclass(eq=False, slots=True)
class Tab:
    """An open page.

    seed, actions: of the episode that it has played last; None: of none. ended: whether that episode is over.
    """

    kind: str
    page: Any
    seed: str | None = None
    actions: str = "[]"
    ended: bool = False
    busy: bool = False

    def leads_to(self, key: Key) -> bool:
        """Whether the page is at the start of an episode, or has made the first of its actions."""
        return self.seed == key[1] and key[2].startswith(self.actions[:-1])

    def played(self, key: Key, ended: bool) -> None:
        """Note what the page has played."""
        _, self.seed, self.actions = key
        self.ended = ended


@dataclass(frozen=True, slots=True)
class Turn:
    """Episodes of a kind that a page plays one after the other. tab: None where a page is opened for them."""

    kind: str
    tab: Tab | None
    keys: Sequence[Key]


class Tabs:
    """The pages of a browser, those that were not used for longest first.

    context: Playwright's, which opens pages. folder: of the pages' files. timeout: seconds that a page may take to
        load. most: pages that stay open.
    """

    def __init__(self, context: Any, folder: Path, timeout: float, most: int) -> None:
        self._context, self._folder, self._timeout, self._most = context, folder, timeout, most
        self._opening = asyncio.Lock()
        self.open: list[Tab] = []

    def of(self, kind: str) -> list[Tab]:
        """The pages of a kind."""
        return [tab for tab in self.open if tab.kind == kind]

    def leave(self, key: Key) -> None:
        """Know that an episode does not go on."""
        for tab in self.of(key[0]):
            if (tab.seed, tab.actions) == key[1:]:
                tab.ended = True

    def plan(self, wanted: Mapping[str, Sequence[Key]], lanes: int = LANES) -> list[Turn]:
        """Which page plays which episodes; each page has one turn. lanes: the most pages of a kind that are opened.

        A page goes on with its episode. The other episodes go to pages whose episode is over, the last used first, then
        to new pages as far as there is room, then to those that were not used for longest. Where there are more
        episodes than pages, all pages of the kind play as many.
        """
        turns, room = [], self._most - len(self.open)
        for kind, keys in wanted.items():
            known = self.of(kind)
            going, rest = _going_on(known, keys)
            free = [tab for tab in known if tab not in going]
            # The programs of a page that was used last are compiled, and in the caches.
            warm = [tab for tab in reversed(free) if tab.ended]
            new = max(0, min(lanes - len(known), room, len(rest) - len(warm)))
            room -= new
            others: list[Tab | None] = [*warm, *[None] * new, *(tab for tab in free if not tab.ended)]
            if rest and not others and not going:
                others = [None]  # it takes the place of another kind's page
            homes: list[tuple[Tab | None, list[Key]]] = [(tab, [key]) for tab, key in going.items()]
            homes += [(tab, []) for tab in others[: len(rest)]]
            _spread(rest, [theirs for _, theirs in homes])
            turns += [Turn(kind, tab, theirs) for tab, theirs in homes]
        return turns

    @asynccontextmanager
    async def ready(self, turn: Turn) -> AsyncIterator[Tab]:
        """The page of a turn, opened where it is not. It stays open in the block.

        Raises `BrowserError` for a kind without a page, and what Playwright raises.
        """
        tab = turn.tab if turn.tab in self.open else None
        if tab is not None:
            self.open.remove(tab)
            if _place(tab.page) == self._file(turn.kind).as_uri():
                self.open.append(tab)
            else:
                await tab.page.close()  # an action led away: what is there is another page
                tab = None
        if tab is None:
            tab = await self._opened(turn.kind)
        tab.busy = True
        try:
            yield tab
        finally:
            tab.busy = False

    async def _opened(self, kind: str) -> Tab:
        """A new page. The one that was not used for longest is closed where there are too many."""
        if not self._file(kind).is_file():
            raise BrowserError(f"there is no page {self._file(kind)}")
        async with self._opening:
            idle = [tab for tab in self.open if not tab.busy]
            if len(self.open) >= self._most and idle:
                self.open.remove(idle[0])
                await idle[0].page.close()
            tab = Tab(kind, await self._context.new_page(), busy=True)
            self.open.append(tab)
        await self.load(tab)  # beside others: one that never loads holds up none
        return tab

    async def load(self, tab: Tab) -> None:
        """Load a page, as if no episode had been played in it."""
        file = self._file(tab.kind).as_uri()
        await tab.page.goto(file, wait_until="load", timeout=self._timeout * 1000)

    def _file(self, kind: str) -> Path:
        return self._folder / f"{kind}.html"


def _going_on(tabs: Sequence[Tab], keys: Sequence[Key]) -> tuple[dict[Tab, Key], list[Key]]:
    """The page that is furthest in an episode, for each episode that has one, and the other episodes."""
    found: dict[Tab, Key] = {}
    rest = []
    for key in keys:
        able = [tab for tab in tabs if tab not in found and tab.leads_to(key)]
        if able:
            found[max(able, key=lambda tab: len(tab.actions))] = key
        else:
            rest.append(key)
    return found, rest


def _spread(rest: Sequence[Key], homes: Sequence[list[Key]]) -> None:
    """Give every home some neighbours, which may go on from each other, so that all have as many or one more."""
    counts = [len(home) for home in homes]
    for _ in rest:
        counts[counts.index(min(counts))] += 1
    start = 0
    for home, count in zip(homes, counts, strict=True):
        more = rest[start : start + count - len(home)]
        start += len(more)
        home += more


def _place(page: Any) -> str:
    """The address of a page without what follows `#`."""
    return str(page.url).partition("#")[0]
