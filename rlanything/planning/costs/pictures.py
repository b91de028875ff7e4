"""Tokens of pictures. An environment declares their size as `env.screen`, width and height in pixels."""

from __future__ import annotations

from rlanything.config import Config
from rlanything.core.images.tokens import estimate
from rlanything.planning.costs.assumptions import Assumptions

UNSEEN = "tree"
"""The value of `env.observe` with which an agent gets no pictures."""


def tokens(config: Config, given: Assumptions) -> int:
    """Tokens of one picture; 0 where `env` declares no screen."""
    screen = config.env.get("screen")
    if not isinstance(screen, list) or len(screen) != 2 or config.env.get("observe") == UNSEEN:
        return 0
    return given.picture_tokens or estimate(*screen)


def of_prompt(config: Config, given: Assumptions, step: int) -> int:
    """Tokens of the pictures in the policy's prompt of a step, from 0."""
    return min(step + 1, config.model.images.policy) * tokens(config, given)


def of_question(config: Config, given: Assumptions) -> int:
    """Tokens of the pictures in a question about a step."""
    return config.model.images.reward * tokens(config, given)
