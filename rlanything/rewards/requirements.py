"""What a reward model needs from a task family. Its methods are checked before anything is made, their answers when
they come."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rlanything.core.errors import ConfigError
from rlanything.core.printable import counted, shown
from rlanything.core.protocols import TaskFamily, Teacher
from rlanything.core.types import Task
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


def labelled(oracle: Teacher, task: Task, actions: Sequence[str]) -> list[tuple[bool, str]]:
    """(label, reason) of each action. Raises `ConfigError` where the family gives something else than one of each."""
    reasons = oracle.explain(task.copy(), actions)
    _require_each(oracle, "explain", reasons, str, actions)
    return list(zip(step_labels(oracle, task, actions), reasons, strict=True))


def step_labels(oracle: Teacher, task: Task, actions: Sequence[str]) -> list[bool]:
    """The label of each action. Raises `ConfigError` where the family gives something else than one bool for each."""
    labels = oracle.label_steps(task.copy(), actions)
    _require_each(oracle, "label_steps", labels, bool, actions)
    return [bool(label) for label in labels]


def _require_each(oracle: Teacher, method: str, found: object, kind: type, actions: Sequence[str]) -> None:
    """Raise `ConfigError` unless a method gave a list with a value of a kind for each action."""
    kinds = (kind, np.bool_) if kind is bool else (kind,)
    right = isinstance(found, list | tuple) and [isinstance(value, kinds) for value in found]
    if right != [True] * len(actions):
        raise ConfigError(
            f"env: {type(oracle).__name__}.{method} gave {shown(found)} for {counted(len(actions), 'action')}; "
            f"it must give a list with one {kind.__name__} for each"
        )


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
