"""A family and some of its tasks, made once."""

from __future__ import annotations

import pytest

from envs.alfworld.family import AlfworldFamily
from rlanything.core.types import Task


@pytest.fixture(scope="session")
def family() -> AlfworldFamily:
    return AlfworldFamily()


@pytest.fixture(scope="session")
def tasks(family: AlfworldFamily) -> list[Task]:
    """Sixty tasks of both kinds of room, all types and levels."""
    return family.make("train", 40, 11) + family.make("out_of_domain", 20, 11)
