"""What a reward model needs from a task family. It is checked before anything is made."""

from __future__ import annotations

from rlanything.core.errors import ConfigError
from rlanything.core.protocols import TaskFamily, Teacher
from rlanything.core.unittests import Examiner, TestingTeacher


def teacher(family: TaskFamily) -> Teacher:
    """The family as the teacher of embedded models and labeller of the panel.

    Raises `ConfigError` for a family without the methods of `Teacher`.
    """
    if not isinstance(family, Teacher):
        raise ConfigError(
            f"env: {type(family).__name__} has no teacher (demonstrate, label_steps, explain, rewrite), which embedded "
            "models need"
        )
    return family


def labeller(family: TaskFamily) -> Teacher:
    """The family as the oracle that votes on steps. Raises `ConfigError` for a family that is not a `Teacher`."""
    if not isinstance(family, Teacher):
        raise ConfigError(
            f"judge.source = 'oracle': {type(family).__name__} does not know which steps are good (label_steps, "
            "explain); use a model as its judge"
        )
    return family


def testing_teacher(family: TaskFamily) -> TestingTeacher:
    """The family as the oracle that writes tests. Raises `ConfigError` for a family without `demonstrate_test`."""
    if not isinstance(family, TestingTeacher):
        raise ConfigError(
            f"judge.source = 'oracle': {type(family).__name__} cannot write right and wrong tests (demonstrate_test); "
            "let a model write its tests"
        )
    return family


def examiner(family: TaskFamily) -> Examiner:
    """The family as an environment that runs programs. Raises `ConfigError` for a family that runs none."""
    if not isinstance(family, Examiner):
        raise ConfigError(
            f"judge.writes = 'tests': {type(family).__name__} runs no programs (examine, criticism, proven); "
            "its reward model writes votes"
        )
    return family
