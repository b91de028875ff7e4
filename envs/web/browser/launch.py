"""What the browser needs: Playwright, a Chromium, and the pages of MiniWoB++. What is missing is named."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from envs.web.browser import picture
from envs.web.browser.view import BrowserError
from rlanything.core.errors import MachineError

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--force-device-scale-factor=1",
)
SLOW = 20.0
"""Seconds that a browser gets to say its version."""
SCREEN = (500, 400)
"""Width and height of a page in pixels, where none is declared: coordinates of actions lie within it."""
SCRIPTS = tuple(Path(__file__).with_name(name) for name in ("clock.js", "view.js", "keys.js", "play.js"))
"""They run in every page before its own scripts, in this order."""


def playwright() -> Any:
    """Playwright's module. Raises `MachineError` where it is not installed."""
    try:
        from playwright import async_api
    except ImportError:
        raise MachineError("Playwright is not installed: pip install 'rlanything[web]'") from None
    return async_api


def chromium(named: str | None) -> str:
    """The path of the browser. Raises `MachineError` for a missing one."""
    if named is not None:
        if not Path(named).is_file():
            raise MachineError(f"chromium: there is no file {named}")
        return named
    for name in NAMES:
        if found := shutil.which(name):
            return found
    raise MachineError(
        f"no Chromium is installed (looked for {', '.join(NAMES)}): apt install chromium, or name one with env.chromium"
    )


def version(path: str) -> str:
    """What the browser says of its version; '' where it does not answer."""
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=SLOW, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return said.stdout.strip()[:200]


def pages(named: str | None) -> Path:
    """The folder of the pages, one HTML file a kind. Raises `MachineError` for a missing one."""
    if named is not None:
        folder = Path(os.path.expandvars(named)).expanduser()
    else:
        # The package's own modules need gymnasium and selenium; its pages do not, so it is found and not imported.
        spec = find_spec("miniwob")
        if spec is None or not spec.submodule_search_locations:
            raise MachineError("the pages of MiniWoB++ are not installed: pip install 'rlanything[web]'")
        folder = Path(next(iter(spec.submodule_search_locations))) / "html" / "miniwob"
    if not folder.is_dir():
        raise MachineError(f"pages: there is no folder {folder}")
    return folder.resolve()


async def launch(
    path: str, screen: tuple[int, int] = SCREEN, pictures: bool = False, density: int = 1
) -> tuple[Any, Any, Any]:
    """(driver, browser, context): a started headless Chromium whose pages have no network.

    screen: width and height of a page, pixels. pictures: whether pictures of pages are taken (`picture`). density:
    pixels of a picture for one of the page. Chromium's own sandbox does not work for root, so it is switched off there.
    """
    driver = await playwright().async_playwright().start()
    try:
        browser = await driver.chromium.launch(
            executable_path=path, args=[*FLAGS, *(picture.FLAGS if pictures else ())],
            chromium_sandbox=os.geteuid() != 0,
            handle_sigint=False, handle_sigterm=False, handle_sighup=False,
        )  # fmt: skip
        context = await browser.new_context(
            viewport={"width": screen[0], "height": screen[1]},
            offline=True,
            locale="en-US",
            timezone_id="UTC",
            device_scale_factor=density,
        )
        for script in (*SCRIPTS, *([picture.SCRIPT] if pictures else [])):
            await context.add_init_script(path=script)
    except BaseException as error:  # also where a time limit cancels this: the driver would stay
        await asyncio.shield(driver.stop())
        if not isinstance(error, Exception):
            raise
        raise BrowserError(f"Chromium ({path}) does not start: {_first_lines(error)}") from None
    return driver, browser, context


def _first_lines(error: Exception) -> str:
    return " | ".join(line.strip() for line in str(error).splitlines()[:6] if line.strip())[:600]
