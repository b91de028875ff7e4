"""Plays episodes in the pages of one Chromium, which runs beside a thread of its own.

The thread makes a time limit possible that holds wherever the caller runs, and keeps the browser's state whole when a
signal interrupts the caller. After any failure the browser is thrown away. The next call starts a fresh one.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from envs.web.browser.asking import ASK, BATCH, PLACES, Answer, ask, fresh, read
from envs.web.browser.launch import SCREEN, chromium, launch, pages, playwright
from envs.web.browser.tabs import Key, Tab, Tabs, Turn
from envs.web.browser.view import LONGEST_TASK, BrowserError, BrowserTimeout, View, shortened

Json = dict[str, Any]
BESIDE = 8
"""Pages that play at the same time."""
MOST_VIEWS = 4096
"""Views that are remembered: the episodes of a task often begin with the same actions."""
STARTING, STOPPING = 60.0, 10.0
"""Seconds that a browser gets to start, and to stop before it is left to its driver."""


class Settings(NamedTuple):
    """Where the browser and its pages are, how long a page may take (seconds), and how many pages stay open.

    screen: width and height of a page, pixels. pictures: whether pictures can be asked for; the browser of agents that
    read text alone is started without what they need.
    """

    chromium: str | None = None
    pages: str | None = None
    timeout: float = 45.0
    most_pages: int = 32
    screen: tuple[int, int] = SCREEN
    pictures: bool = False


class Pool:
    """A Chromium with pages for the kinds that were played lately. Start it by its first use; `close` stops it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        playwright()
        self.path, self.folder = chromium(settings.chromium), pages(settings.pages)
        self.starts = 0
        """How often a browser was started."""
        self._views: OrderedDict[Key, View] = OrderedDict()
        self._running: tuple[Any, Any] | None = None
        self._tabs: Tabs | None = None
        self._loop = asyncio.new_event_loop()
        self._turn = asyncio.Lock()
        self._thread = threading.Thread(target=self._loop.run_forever, name="chromium", daemon=True)
        self._thread.start()

    def play(
        self, kind: str, seed: str, actions: Sequence[Json], tries: int = 1, picture: bool = False
    ) -> View:
        """What the page of `kind` shows after these actions from the start of the episode with this seed.

        tries: starts of a browser before its failure is raised. picture: whether the view has one, which needs
        `settings.pictures`. Raises `BrowserError` when the browser or the page fails, `BrowserTimeout` when it takes
        longer than `settings.timeout` seconds. `kind` must be a known one: it becomes the name of a file.
        """
        key = _key(kind, seed, actions)
        if self._knows(key, picture):
            self._views.move_to_end(key)
        else:
            answers = self._call(kind, lambda tabs: self._played(tabs, _alone(tabs, key), picture), tries)
            self._remember(key, View.from_json(*answers[0]))
        return self._views[key]

    def play_ahead(
        self, episodes: Mapping[str, Iterable[tuple[str, Sequence[Json]]]], picture: bool = False
    ) -> None:
        """Play many episodes, in several pages at the same time; `play` then knows what they show.

        episodes: kind -> (seed, actions) of each. A failure is left to `play`, which finds out whose it is: no episode
        pays for another one.
        """
        keys = {kind: {_key(kind, *one) for one in episodes[kind]} for kind in sorted(episodes)}
        wanted = {
            kind: sorted(key for key in each if not self._knows(key, picture)) for kind, each in keys.items()
        }
        count = sum(map(len, wanted.values()))
        if not count:
            return
        try:  # each page has limits of its own
            found = self._call(
                "of a batch", lambda tabs: self._side_by_side(tabs, tabs.plan(wanted), picture), 1, count
            )
        except (BrowserError, BrowserTimeout):
            return
        for key, answer in found.items():
            try:
                self._remember(key, View.from_json(*answer))
            except BrowserError:
                continue

    def places(self, kind: str, seed: str, actions: Sequence[Json]) -> dict[int, tuple[int, int]]:
        """The middles of the elements that can be clicked there, by number, in pixels. Raises as `play` does.

        Where pictures can be asked for, the places are those of one.
        """
        key = _key(kind, seed, actions)

        async def look(tabs: Tabs) -> Any:
            async with tabs.ready(_alone(tabs, key)) as tab:
                await self._answers(tabs, tab, [key], picture=False)
                return await ask(tab.page, tab.kind, PLACES, None)

        found = self._call(kind, look, tries=2)
        try:
            return {int(number): (int(x), int(y)) for number, (x, y) in found.items()}
        except (AttributeError, TypeError, ValueError):
            raise BrowserError(f"the page {kind} answered with something that is no places") from None

    def instructions(self, kind: str, seeds: Sequence[str]) -> list[str]:
        """What the page asks for with each of these seeds. Raises as `play` does."""

        async def read(tabs: Tabs) -> Any:
            async with tabs.ready(_alone(tabs, _key(kind, "", []))) as tab:
                tab.seed, tab.ended = None, True
                return await ask(tab.page, tab.kind, ASK, {"seeds": list(seeds)})

        answer = self._call(kind, read, tries=2)
        if not isinstance(answer, list) or len(answer) != len(seeds):
            raise BrowserError(f"the page {kind} answered with something that is no list of instructions")
        return [shortened(text, LONGEST_TASK) for text in answer]

    def leave(self, kind: str, seed: str, actions: Sequence[Json]) -> None:
        """Know that an episode does not go on: its page is the first that another one gets."""
        key = _key(kind, seed, actions)

        def note() -> None:
            if self._tabs is not None:
                self._tabs.leave(key)

        self._loop.call_soon_threadsafe(note)

    def close(self) -> None:
        """Stop the browser. The pool can be used again."""
        if self._loop.is_running():
            self._wait(self._stop(), 2 * STOPPING)

    def _knows(self, key: Key, picture: bool) -> bool:
        return key in self._views and not (picture and self._views[key].picture is None)

    def _remember(self, key: Key, view: View) -> None:
        self._views[key] = view
        while len(self._views) > MOST_VIEWS:
            self._views.popitem(last=False)

    def _call(
        self, kind: str, work: Callable[[Tabs], Coroutine[Any, Any, Any]], tries: int, times: int = 1
    ) -> Any:
        """What some work in the browser returns. times: how often `settings.timeout` it may take."""
        limit = times * self.settings.timeout
        while True:
            tries -= 1
            try:
                return self._wait(self._work(kind, work, limit), STARTING + limit + 2 * STOPPING)
            except (BrowserError, BrowserTimeout):
                if tries <= 0:
                    raise

    def _wait(self, work: Coroutine[Any, Any, Any], limit: float) -> Any:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(limit)
        except BrowserTimeout:
            raise
        except TimeoutError:
            future.cancel()
            raise BrowserTimeout(f"the browser did not answer within {limit:g} s") from None

    async def _work(self, kind: str, work: Callable[[Tabs], Coroutine[Any, Any, Any]], limit: float) -> Any:
        async with self._turn:
            try:
                if self._tabs is None:
                    self._tabs = await self._launched()
                    self.starts += 1
                return await asyncio.wait_for(work(self._tabs), limit)
            except (BrowserError, BrowserTimeout):
                raise
            except TimeoutError:
                await self._drop()
                raise BrowserTimeout(f"the page {kind} did not answer within {limit:g} s") from None
            except asyncio.CancelledError:  # the caller waits no longer; the page may hang
                await asyncio.shield(self._drop())
                raise
            except Exception as error:
                await self._drop()
                said = str(error).splitlines() or [type(error).__name__]
                raise BrowserError(f"the page {kind} failed: {said[0][:300]}") from None

    async def _launched(self) -> Tabs:
        """The pages of a browser that was started in time."""
        started = launch(self.path, self.settings.screen, self.settings.pictures)
        try:
            driver, browser, context = await asyncio.wait_for(started, STARTING)
        except TimeoutError:
            raise BrowserTimeout(f"Chromium ({self.path}) did not start within {STARTING:g} s") from None
        self._running = driver, browser
        return Tabs(context, self.folder, self.settings.timeout, self.settings.most_pages)

    async def _side_by_side(self, tabs: Tabs, turns: Sequence[Turn], picture: bool) -> dict[Key, Answer]:
        """What the pages answer that neither fail nor take longer than `settings.timeout` for a call."""
        beside = asyncio.Semaphore(min(BESIDE, self.settings.most_pages))

        async def play(turn: Turn) -> list[Answer]:
            async with beside:
                limit = -(-len(turn.keys) // BATCH) * self.settings.timeout
                return await asyncio.wait_for(self._played(tabs, turn, picture), limit)

        found = await asyncio.gather(*map(play, turns), return_exceptions=True)
        failed = [error for error in found if isinstance(error, BaseException)]
        if not all(isinstance(error, BrowserError) for error in failed):
            await self._drop()
        answered = [(turn, each) for turn, each in zip(turns, found, strict=True) if isinstance(each, list)]
        return {key: answer for turn, each in answered for key, answer in zip(turn.keys, each, strict=True)}

    async def _played(self, tabs: Tabs, turn: Turn, picture: bool) -> list[Answer]:
        """What a page answers for episodes that it plays one after the other."""
        async with tabs.ready(turn) as tab:
            return await self._answers(tabs, tab, turn.keys, picture)

    async def _answers(self, tabs: Tabs, tab: Tab, keys: Sequence[Key], picture: bool) -> list[Answer]:
        pictures, screen = self.settings.pictures, self.settings.screen
        answers = await (fresh(tabs, tab, keys, screen if picture else None) if pictures else read(tab, keys))
        last, _ = answers[-1]
        tab.played(keys[-1], ended=isinstance(last, dict) and last.get("done") is True)
        return answers

    async def _drop(self) -> None:
        """Throw the browser away after a failure. What it says then is of no interest."""
        try:
            await asyncio.wait_for(self._stop(), STOPPING)
        except Exception:
            self._running = self._tabs = None

    async def _stop(self) -> None:
        running, self._running, self._tabs = self._running, None, None
        if running is not None:
            driver, browser = running
            try:
                await asyncio.wait_for(browser.close(), STOPPING / 2)
            finally:
                await driver.stop()


def _alone(tabs: Tabs, key: Key) -> Turn:
    """A page for one episode."""
    return tabs.plan({key[0]: [key]}, lanes=1)[0]


def _key(kind: str, seed: str, actions: Sequence[Json]) -> Key:
    return kind, seed, json.dumps(actions)
