"""A coding project as small as it goes, and the sandbox that it needs."""

from __future__ import annotations

import pytest
from stage_cases import ROOT

from envs.coding.family import CodingFamily
from envs.coding.sandbox import SandboxError
from rlanything.config import Config, parse
from rlanything.planning import compose

TINY = (
    "env=coding",
    "scale=smoke",
    "bootstrap.policy.steps=2",
    "bootstrap.reward.steps=200",
    "judge.m=16",
    "judge.temperature=0.5",
    "bootstrap.adapter.episodes=8",
    "bootstrap.adapter.steps=2",
    "bootstrap.adapter.batch=2",
    "tasks.in_domain=3",
    "tasks.out_of_domain=2",
    "tasks.reward_panel=4",
)


def tiny(*overrides: str) -> Config:
    """The smallest coding configuration that trains everything; only the reward model learns something by it."""
    return parse(compose.compose([*TINY, *overrides], ROOT))


def require_sandbox() -> None:
    """Skip where programs cannot be contained."""
    family = CodingFamily()
    try:
        family.sandbox()
    except SandboxError as error:
        pytest.skip(f"no sandbox here: {error}")
    finally:
        family.close()
