"""A browser for the tests of web pages, and pages of our own that misbehave."""

from __future__ import annotations

from pathlib import Path

import pytest
from web_cases import small

from envs.web.browser import launch
from envs.web.browser.pool import Pool, Settings
from envs.web.browser.shared import shared
from rlanything.core.errors import MachineError

PAGES = Path(__file__).parent / "pages"


def missing() -> str:
    """What is not installed, and how to get it; '' where nothing is missing."""
    try:
        launch.playwright(), launch.chromium(None), launch.pages(None)
    except MachineError as error:
        return str(error)
    return ""


def pytest_collection_modifyitems(items):
    """Tests that ask for a browser are skipped without one; all of them run in one process, which has one browser."""
    needs = {"pool", "ours", "patient", "family", "seeing", "installed"}
    reason = missing()
    for item in items:
        if needs & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group("web"))
            if reason:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def started():
    """Pages of MiniWoB++."""
    made = Pool(Settings())
    yield made
    made.close()


@pytest.fixture
def pool(started):
    """The same, with a browser that runs: other tests kill every browser of this process."""
    started._views.pop(("click-test", "alive", "[]"), None)
    started.play("click-test", "alive", [], tries=2)
    return started


@pytest.fixture(scope="session")
def seeing():
    """Pages of MiniWoB++ in a browser that takes pictures, which families with pictures share."""
    return shared(Settings(pictures=True))


@pytest.fixture(scope="session")
def installed():
    """For tests that start a browser of their own: they are skipped where something is missing."""


@pytest.fixture
def ours():
    """Our own pages, with a short time limit."""
    made = Pool(Settings(pages=str(PAGES), timeout=10.0))
    yield made
    made.close()


@pytest.fixture
def patient():
    """The same pages, and a minute for each answer."""
    made = Pool(Settings(pages=str(PAGES), timeout=60.0))
    yield made
    made.close()


@pytest.fixture(scope="session")
def family():
    """A few kinds, as a language model reads them."""
    return small()
