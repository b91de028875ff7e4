"""What a reward model needs of a task family, checked before anything is made."""

from __future__ import annotations

from rlanything.core.errors import ConfigError
from rlanything.core.types import TaskFamily, Teacher
from rlanything.core.unittests import Examiner


def teacher(family: TaskFamily) -> Teacher:
    """The family as the teacher of embedded models and labeller of the panel. Raises `ConfigError` if it is none."""
    if not isinstance(family, Teacher):
        raise ConfigError(
            f"env: {type(family).__name__} has no teacher (demonstrate, label_steps, explain, rewrite), which embedded "
            "models and the bootstrap's reward panel need"
        )
    return family


def examiner(family: TaskFamily) -> Examiner:
    """The family as one that runs programs. Raises `ConfigError` if it does not."""
    if not isinstance(family, Examiner):
        raise ConfigError(
            f"judge.writes = 'tests': {type(family).__name__} runs no programs (examine, criticism, proven); "
            "its reward model writes votes"
        )
    return family
