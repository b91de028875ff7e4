"""A chromium that playwright drives, and a plain server for a folder."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rlanything.core.errors import ConfigError

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome")
"""The first that is installed. The headless shell has no menus and no toolbar to draw."""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder, as `python -m http.server` shows it."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@contextmanager
def opened() -> Iterator[Any]:
    """A browser. Raises `ConfigError` saying what is missing."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise ConfigError("playwright is missing: pip install 'rlanything[dev]'") from None
    chromium = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if chromium is None:
        raise ConfigError("no chromium on the PATH (Debian: apt-get install chromium)")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield browser
        browser.close()
