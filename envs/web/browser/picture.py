"""Pictures of pages. The same seed and actions give the same bytes, whatever was played in the page before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envs.web.browser.view import BrowserError
from rlanything.core.images import Image

SCRIPT = Path(__file__).with_name("picture.js")
"""It runs in every page where pictures are taken, after those of `launch`."""
FLAGS = (
    "--disable-lcd-text",
    "--disable-checker-imaging",
    "--disable-partial-raster",
)
"""Of a browser that takes pictures: letters have no coloured edges, images are there when the rest is drawn, and
nothing is drawn over what was there before."""
LOADED = "() => rla.loaded()"


async def taken(page: Any, screen: tuple[int, int]) -> Image:
    """What `page` shows now. Raises `BrowserError` for something that is no PNG of the screen's size."""
    await page.evaluate(LOADED)
    # Whoever asks has a time limit of its own.
    png = await page.screenshot(type="png", scale="css", animations="allow", caret="initial", timeout=0)
    try:
        found = Image(png)
    except ValueError as error:
        raise BrowserError(f"the picture of the page cannot be read: {error}") from None
    if (found.width, found.height) != screen:
        size = f"{found.width} x {found.height}"
        raise BrowserError(f"the picture has {size} pixels, the screen {screen[0]} x {screen[1]}")
    return found
