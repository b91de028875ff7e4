"""The key of the local endpoint, in the environment as a user would put it there."""

from __future__ import annotations

import pytest
from endpoint_picture_cases import SHOWN
from endpoint_server import KEY

from rlanything.files.images import ImageStore


@pytest.fixture(autouse=True)
def key(monkeypatch) -> str:
    monkeypatch.setenv("TEST_ENDPOINT_KEY", KEY)
    return KEY


@pytest.fixture
def store(tmp_path) -> ImageStore:
    """The pictures of `endpoint_picture_cases`."""
    found = ImageStore(tmp_path / "images")
    found.add(SHOWN)
    return found
