"""The key of the local endpoint, in the environment as a user would put it there."""

from __future__ import annotations

import pytest
from endpoint_server import KEY


@pytest.fixture(autouse=True)
def key(monkeypatch) -> str:
    monkeypatch.setenv("TEST_ENDPOINT_KEY", KEY)
    return KEY
