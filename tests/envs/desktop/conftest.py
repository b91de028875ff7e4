"""Small desktops for tests. One process has all of them: each desktop is several programs."""

from __future__ import annotations

import pytest

from envs.desktop.small import box
from envs.desktop.small.family import DesktopFamily


def pytest_collection_modifyitems(items):
    """Tests that ask for a desktop are skipped where something is not installed; the reason names the packages."""
    for item in items:
        if "desktop" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("desktop"))
            if reason := box.missing():
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def desktop():
    """The family, with up to four desktops and generous times: machines of tests are busy."""
    made = DesktopFamily(worlds=4, observe="both", timeout=120.0)
    yield made
    if made._made is not None:
        made._made.close()


@pytest.fixture
def world(desktop):
    """A desktop that a test has to itself, and gives back however it ends."""
    taken = desktop._pool.take()
    yield taken
    desktop._pool.give_back(taken)
