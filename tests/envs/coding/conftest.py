"""A family with its sandbox, and some of its tasks, made once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from envs.coding.family import CodingFamily
from envs.coding.sandbox import SandboxError
from rlanything.core.types import Task


@pytest.fixture(scope="session")
def family() -> Iterator[CodingFamily]:
    made = CodingFamily()
    try:
        made.sandbox()
    except SandboxError as error:
        pytest.skip(f"no sandbox here: {error}")
    yield made
    made.close()


@pytest.fixture(scope="session")
def tasks() -> list[Task]:
    """Problems of every split; making them needs no sandbox."""
    made = CodingFamily()
    return [t for s in ("train", "in_domain", "out_of_domain", "reward_panel") for t in made.make(s, 20, 3)]
