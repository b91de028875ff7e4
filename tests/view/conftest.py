"""A plain server for a folder, and the pages of two made-up runs."""

from __future__ import annotations

import functools
import http.server
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from view_cases import made, programs_run, steps_run

PATIENCE_S = 30


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="session")
def server(tmp_path_factory) -> Iterator[tuple[Path, str]]:
    """A folder, and where a plain server shows it."""
    folder = tmp_path_factory.mktemp("site")
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()


@pytest.fixture(scope="session")
def site(server) -> str:
    folder, url = server
    made(folder / "votes", steps_run())
    made(folder / "tests", programs_run())
    return url


@pytest.fixture(scope="session")
def project(undisturbed) -> Path:
    """A project with a finished run."""
    return undisturbed.parents[2]


@pytest.fixture
def look(tab) -> Callable[[str], None]:
    """Open a page, and wait until what its address asks for is shown."""

    def opening(url: str) -> None:
        tab.goto("about:blank")
        tab.goto(url)
        tab.wait_for_selector("body[data-shown]", state="attached")

    return opening


@pytest.fixture
def settled(tab) -> Callable[[str], None]:
    """Wait for a JavaScript condition; what the page says instead is in the failure.

    playwright's own waiting evaluates strings inside the page, which the page's policy refuses."""

    def wait(wanted: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while not tab.evaluate(wanted):
            said = (tab.url, tab.inner_text("#shown"), tab.inner_text("#problem"), tab.problems)
            assert time.monotonic() < until, f"never: {wanted}; {said}"
            tab.wait_for_timeout(20)

    return wait


@pytest.fixture
def counted(settled) -> Callable[[str], None]:
    """Wait until the list says how many rollouts it has, e.g. `1 of 7`."""
    return lambda wanted: settled(
        f"document.getElementById('shown').textContent.startsWith('{wanted} rollouts')"
    )


@pytest.fixture
def everything(tab) -> Callable[[], Any]:
    """Open every fold, and give the page's whole text."""

    def unfold() -> str:
        for _ in range(4):
            tab.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
            tab.wait_for_timeout(150)
        text: str = tab.inner_text("body")
        return text

    return unfold
