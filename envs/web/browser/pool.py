"""Plays episodes in the pages of one Chromium, which runs beside a thread of its own.

The thread makes a time limit possible that holds wherever the caller runs, and keeps the browser's state whole when a
signal interrupts the caller. After any failure the browser is thrown away. The next call starts a fresh one.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple

from envs.web.browser.launch import SCREEN, chromium, launch, pages, playwright
from envs.web.browser.picture import taken
from envs.web.browser.view import LONGEST, MOST_ITEMS, BrowserError, BrowserTimeout, View
from rlanything.core.images import Image

Json = dict[str, Any]
PLAY, PLAYS, ASK, PLACES, UNUSED = (
    f"([page, asked]) => rla.at(page).{name}(asked)" for name in ("play", "plays", "ask", "places", "unused")
)
BATCH = 8
"""Episodes that are played in one call."""
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
    """A Chromium with a page for each kind that was played lately. Start it by its first use; `close` stops it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        playwright()
        self.path, self.folder = chromium(settings.chromium), pages(settings.pages)
        self.starts = 0
        """How often a browser was started."""
        self._open: OrderedDict[str, Any] = OrderedDict()
        self._views: OrderedDict[tuple[str, str, str], View] = OrderedDict()
        self._running: tuple[Any, Any, Any] | None = None
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
        key = kind, seed, json.dumps(actions)
        if self._knows(key, picture):
            self._views.move_to_end(key)
        else:
            self._remember(key, self._shown(kind, [_asked(seed, actions)], tries, picture)[0])
        return self._views[key]

    def play_ahead(
        self, kind: str, episodes: Iterable[tuple[str, Sequence[Json]]], picture: bool = False
    ) -> None:
        """Play many episodes of a kind, (seed, actions) each, in few calls; `play` then knows what they show.

        A failure is left to `play`, which finds out whose it is: no episode pays for another one.
        """
        keys = {(kind, seed, json.dumps(actions)): (seed, actions) for seed, actions in episodes}
        missing = sorted(key for key in keys if not self._knows(key, picture))
        for start in range(0, len(missing), BATCH):
            part = missing[start : start + BATCH]
            try:
                views = self._shown(kind, [_asked(*keys[key]) for key in part], 1, picture)
            except (BrowserError, BrowserTimeout):
                return
            for key, view in zip(part, views, strict=True):
                self._remember(key, view)

    def places(self, kind: str, seed: str, actions: Sequence[Json]) -> dict[int, tuple[int, int]]:
        """The middles of the elements that can be clicked there, by number, in pixels. Raises as `play` does."""

        async def look() -> Any:
            if self.settings.pictures:  # the places are those of a picture
                await self._fresh(kind, [_asked(seed, actions)], picture=False)
            else:
                await self._ask(kind, PLAY, _asked(seed, actions))
            return await self._ask(kind, PLACES, None)

        found = self._call(kind, look, tries=2)
        try:
            return {int(number): (int(x), int(y)) for number, (x, y) in found.items()}
        except (AttributeError, TypeError, ValueError):
            raise BrowserError(f"the page {kind} answered with something that is no places") from None

    def _knows(self, key: tuple[str, str, str], picture: bool) -> bool:
        return key in self._views and not (picture and self._views[key].picture is None)

    def _shown(self, kind: str, asked: list[Json], tries: int, picture: bool) -> list[View]:
        """The views of episodes that are played one after the other in one page."""
        if self.settings.pictures:
            pairs = self._call(kind, lambda: self._fresh(kind, asked, picture), tries)
            return [View.from_json(answer, image) for answer, image in pairs]
        if len(asked) == 1:
            return [View.from_json(self._call(kind, lambda: self._ask(kind, PLAY, asked[0]), tries))]
        answers = self._call(kind, lambda: self._ask(kind, PLAYS, asked), tries)
        if not isinstance(answers, list) or len(answers) != len(asked):
            raise BrowserError(
                f"the page {kind} answered with something that is no list of {len(asked)} views"
            )
        return [View.from_json(answer) for answer in answers]

    def _remember(self, key: tuple[str, str, str], view: View) -> None:
        self._views[key] = view
        while len(self._views) > MOST_VIEWS:
            self._views.popitem(last=False)

    def instructions(self, kind: str, seeds: Sequence[str]) -> list[str]:
        """What the page asks for with each of these seeds. Raises as `play` does."""
        answer = self._call(kind, lambda: self._ask(kind, ASK, {"seeds": list(seeds)}), tries=2)
        if not isinstance(answer, list) or len(answer) != len(seeds):
            raise BrowserError(f"the page {kind} answered with something that is no list of instructions")
        return [str(text)[:2000] for text in answer]

    def _call(self, kind: str, work: Callable[[], Coroutine[Any, Any, Any]], tries: int) -> Any:
        while True:
            tries -= 1
            try:
                return self._wait(self._play(kind, work), STARTING + self.settings.timeout + 2 * STOPPING)
            except (BrowserError, BrowserTimeout):
                if tries <= 0:
                    raise

    def close(self) -> None:
        """Stop the browser. The pool can be used again."""
        if self._loop.is_running():
            self._wait(self._stop(), 2 * STOPPING)

    def _wait(self, work: Coroutine[Any, Any, Any], limit: float) -> Any:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(limit)
        except BrowserTimeout:
            raise
        except TimeoutError:
            future.cancel()
            raise BrowserTimeout(f"the browser did not answer within {limit:g} s") from None

    async def _play(self, kind: str, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        async with self._turn:
            try:
                if self._running is None:
                    self._running = await self._launched()
                    self.starts += 1
                return await asyncio.wait_for(work(), self.settings.timeout)
            except (BrowserError, BrowserTimeout):
                raise
            except TimeoutError:
                await self._drop()
                limit = self.settings.timeout
                raise BrowserTimeout(f"the page {kind} did not answer within {limit:g} s") from None
            except asyncio.CancelledError:  # the caller waits no longer; the page may hang
                await asyncio.shield(self._drop())
                raise
            except Exception as error:
                await self._drop()
                said = str(error).splitlines() or [type(error).__name__]
                raise BrowserError(f"the page {kind} failed: {said[0][:300]}") from None

    async def _launched(self) -> tuple[Any, Any, Any]:
        """A browser that was started in time."""
        started = launch(self.path, self.settings.screen, self.settings.pictures)
        try:
            return await asyncio.wait_for(started, STARTING)
        except TimeoutError:
            raise BrowserTimeout(f"Chromium ({self.path}) did not start within {STARTING:g} s") from None

    async def _ask(self, kind: str, call: str, asked: Any) -> Any:
        """What a function of `play.js` returns in the page of a kind."""
        return await (await self._at(kind)).evaluate(call, [f"{kind}.html", asked])

    async def _fresh(self, kind: str, asked: Sequence[Json], picture: bool) -> list[tuple[Any, Image | None]]:
        """(answer, picture) of each episode. Where another one was played in the page, it is loaded again.

        A page can keep what its next episode should not show: how far something is scrolled, a drawing under another.
        """
        found = []
        for one in asked:
            if await self._ask(kind, UNUSED, one) is not True:
                await self._load(self._open[kind], kind)
            answer = await self._ask(kind, PLAY, one)
            image = await taken(self._open[kind], self.settings.screen) if picture else None
            found.append((answer, image))
        return found

    async def _at(self, kind: str) -> Any:
        """The page of a kind, which is opened where it is not."""
        file = (self.folder / f"{kind}.html").as_uri()
        page = self._open.pop(kind, None)
        if page is not None and _place(page) != file:  # an action led away: what is there is another page
            await page.close()
            page = None
        self._open[kind] = page = page or await self._page(kind)
        return page

    async def _page(self, kind: str) -> Any:
        """A new page. The page that was not used for longest is closed where there are too many."""
        assert self._running is not None
        if len(self._open) >= self.settings.most_pages:
            await self._open.popitem(last=False)[1].close()
        if not (self.folder / f"{kind}.html").is_file():
            raise BrowserError(f"there is no page {self.folder / f'{kind}.html'}")
        page = await self._running[2].new_page()
        await self._load(page, kind)
        return page

    async def _load(self, page: Any, kind: str) -> None:
        file = (self.folder / f"{kind}.html").as_uri()
        await page.goto(file, wait_until="load", timeout=self.settings.timeout * 1000)

    async def _drop(self) -> None:
        """Throw the browser away after a failure. What it says then is of no interest."""
        try:
            await asyncio.wait_for(self._stop(), STOPPING)
        except Exception:
            self._running = None
            self._open.clear()

    async def _stop(self) -> None:
        running, self._running = self._running, None
        self._open.clear()
        if running is not None:
            driver, browser, _ = running
            try:
                await asyncio.wait_for(browser.close(), STOPPING / 2)
            finally:
                await driver.stop()


def _asked(seed: str, actions: Sequence[Json]) -> Json:
    return {"seed": seed, "actions": list(actions), "most": MOST_ITEMS, "longest": LONGEST}


def _place(page: Any) -> str:
    """The address of a page without what follows `#`."""
    return str(page.url).partition("#")[0]
