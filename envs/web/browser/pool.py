"""Plays episodes in the pages of one Chromium, which runs beside a thread of its own.

The thread makes a time limit possible that holds wherever the caller runs, and keeps the browser's state whole when a
signal interrupts the caller. After any failure the browser is thrown away. The next call starts a fresh one.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import OrderedDict
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, NamedTuple

from envs.web.browser.launch import chromium, launch, pages, playwright
from envs.web.browser.view import LONGEST, MOST_ITEMS, BrowserError, BrowserTimeout, View

Json = dict[str, Any]
PLAY, PLAYS, ASK = (f"([page, asked]) => rla.at(page).{name}(asked)" for name in ("play", "plays", "ask"))
BATCH = 8
"""Episodes that are played in one call."""
MOST_VIEWS = 4096
"""Views that are remembered: the episodes of a task often begin with the same actions."""
STARTING, STOPPING = 60.0, 10.0
"""Seconds that a browser gets to start, and to stop before it is left to its driver."""


class Settings(NamedTuple):
    """Where the browser and its pages are, how long a page may take (seconds), and how many pages stay open."""

    chromium: str | None = None
    pages: str | None = None
    timeout: float = 45.0
    most_pages: int = 32


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

    def play(self, kind: str, seed: str, actions: Sequence[Json], tries: int = 1) -> View:
        """What the page of `kind` shows after these actions from the start of the episode with this seed.

        tries: starts of a browser before its failure is raised. Raises `BrowserError` when the browser or the page
        fails, `BrowserTimeout` when it takes longer than `settings.timeout` seconds. `kind` must be a known one: it
        becomes the name of a file.
        """
        key = kind, seed, json.dumps(actions)
        if key in self._views:
            self._views.move_to_end(key)
        else:
            self._remember(key, View.from_json(self._call(kind, PLAY, _asked(seed, actions), tries)))
        return self._views[key]

    def play_ahead(self, kind: str, episodes: Iterable[tuple[str, Sequence[Json]]]) -> None:
        """Play many episodes of a kind, (seed, actions) each, in few calls; `play` then knows what they show.

        A failure is left to `play`, which finds out whose it is: no episode pays for another one.
        """
        keys = {(kind, seed, json.dumps(actions)): (seed, actions) for seed, actions in episodes}
        missing = sorted(key for key in keys if key not in self._views)
        for start in range(0, len(missing), BATCH):
            part = missing[start : start + BATCH]
            try:
                answers = self._call(kind, PLAYS, [_asked(*keys[key]) for key in part], tries=1)
                views = [View.from_json(answer) for answer in (answers if isinstance(answers, list) else [])]
            except (BrowserError, BrowserTimeout):
                return
            for key, view in zip(part, views, strict=False):
                self._remember(key, view)

    def _remember(self, key: tuple[str, str, str], view: View) -> None:
        self._views[key] = view
        while len(self._views) > MOST_VIEWS:
            self._views.popitem(last=False)

    def instructions(self, kind: str, seeds: Sequence[str]) -> list[str]:
        """What the page asks for with each of these seeds. Raises as `play` does."""
        answer = self._call(kind, ASK, {"seeds": list(seeds)}, tries=2)
        if not isinstance(answer, list) or len(answer) != len(seeds):
            raise BrowserError(f"the page {kind} answered with something that is no list of instructions")
        return [str(text)[:2000] for text in answer]

    def _call(self, kind: str, call: str, asked: Any, tries: int) -> Any:
        while True:
            tries -= 1
            try:
                return self._wait(
                    self._play(kind, call, asked), STARTING + self.settings.timeout + 2 * STOPPING
                )
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

    async def _play(self, kind: str, call: str, asked: Any) -> Any:
        async with self._turn:
            try:
                if self._running is None:
                    self._running = await asyncio.wait_for(launch(self.path), STARTING)
                    self.starts += 1
                return await asyncio.wait_for(self._ask(kind, call, asked), self.settings.timeout)
            except BrowserError:
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

    async def _ask(self, kind: str, call: str, asked: Any) -> Any:
        file = (self.folder / f"{kind}.html").as_uri()
        page = self._open.pop(kind, None)
        if page is not None and _place(page) != file:  # an action led away: what is there is another page
            await page.close()
            page = None
        self._open[kind] = page = page or await self._page(kind)
        return await page.evaluate(call, [f"{kind}.html", asked])

    async def _page(self, kind: str) -> Any:
        """A new page. The page that was not used for longest is closed where there are too many."""
        assert self._running is not None
        if len(self._open) >= self.settings.most_pages:
            await self._open.popitem(last=False)[1].close()
        file = self.folder / f"{kind}.html"
        if not file.is_file():
            raise BrowserError(f"there is no page {file}")
        page = await self._running[2].new_page()
        await page.goto(file.as_uri(), wait_until="load", timeout=self.settings.timeout * 1000)
        return page

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
