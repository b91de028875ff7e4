"""What a reward model needs from a task family. Its methods are checked before anything is made, their answers when
they come.

Nothing stands in for a label or a demonstration. So where one of these methods fails, the command ends with an error
that names the method and the task: the author of the environment must hear of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from json import JSONDecodeError

import numpy as np

from rlanything.core.errors import ConfigError, EnvironmentFailure, UserError
from rlanything.core.printable import counted, one_line, shown
from rlanything.core.protocols import TaskFamily, Teacher
from rlanything.core.returned.answers import require, require_observation
from rlanything.core.types import Task
from rlanything.core.unittests import Examiner, TestingTeacher, UnitTestTeacher
from rlanything.loop.episodes import HERE
from rlanything.rewards.protocols import Demonstration

WRITTEN = "demonstrate_test(task, seed, noise)"
BROKEN = (UnicodeError, JSONDecodeError)
"""Kinds of `ValueError` which say that a text is broken, and not that a task is unknown."""


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
    """(label, reason) of each action. Raises `EnvironmentFailure` where the family fails or gives not one of each."""
    found = reasons(oracle, task, actions)
    return list(zip(step_labels(oracle, task, actions), found, strict=True))


def reasons(oracle: Teacher, task: Task, actions: Sequence[str]) -> list[str]:
    """The reason for each label. Raises `EnvironmentFailure` where the family fails or gives not one text for each."""
    with _named_where_it_fails(oracle, "explain", task):
        found = oracle.explain(task.copy(), actions)
        _require_each(oracle, "explain", found, str, actions)
        "".join(found).encode()  # no tokenizer has an id for half a surrogate pair
    return found


def step_labels(oracle: Teacher, task: Task, actions: Sequence[str]) -> list[bool]:
    """The label of each action. Raises `EnvironmentFailure` where the family fails or gives not one bool for each."""
    with _named_where_it_fails(oracle, "label_steps", task):
        found = oracle.label_steps(task.copy(), actions)
        _require_each(oracle, "label_steps", found, bool, actions)
    return [bool(label) for label in found]


def demonstration(expert: Teacher, task: Task, seed: int, noise: float) -> Demonstration:
    """The steps of `demonstrate`, one at least.

    Raises `EnvironmentFailure` where the family fails or gives something else.
    """
    what = "demonstrate(task, seed, noise)"
    with _named_where_it_fails(expert, "demonstrate", task):
        found = [
            (require_observation(seen, what), _text(action, f"{what}: an action"))
            for seen, action in expert.demonstrate(task.copy(), seed, noise)
        ]
        if not found:
            raise ValueError(f"{what} has no step")
    return found


def demonstrated_test(examples: UnitTestTeacher, task: Task, seed: int, noise: float) -> str:
    """The reply of `demonstrate_test`. Raises `EnvironmentFailure` where the family fails or gives something else."""
    with _named_where_it_fails(examples, "demonstrate_test", task):
        return _text(examples.demonstrate_test(task.copy(), seed, noise), WRITTEN)


def known_tests(examples: UnitTestTeacher, task: Task, drawn: Iterable[tuple[int, float]]) -> list[str]:
    """A reply of `demonstrate_test` for each (seed, noise); none for a task of which it knows no test.

    It says so with a `ValueError`. Raises `EnvironmentFailure` where the family fails otherwise, or gives something
    else: also for `BROKEN`.
    """
    with _named_where_it_fails(examples, "demonstrate_test", task):
        try:
            found = [examples.demonstrate_test(task.copy(), seed, noise) for seed, noise in drawn]
        except (*BROKEN, UserError):
            raise
        except ValueError:
            return []
        return [_text(reply, WRITTEN) for reply in found]


def demonstrated_criticism(examples: UnitTestTeacher, task: Task, seed: int) -> str:
    """The text of `demonstrate_criticism`.

    Raises `EnvironmentFailure` where the family fails or gives something else.
    """
    with _named_where_it_fails(examples, "demonstrate_criticism", task):
        return _text(examples.demonstrate_criticism(task.copy(), seed), "demonstrate_criticism(task, seed)")


@contextmanager
def _named_where_it_fails(family: object, method: str, task: Task) -> Iterator[None]:
    """Raise `EnvironmentFailure` that names a method of the family and the task, for what the method raises.

    An `EnvironmentFailure` of the family and `HERE` are raised as they are: the class says where the cause lies.
    """
    try:
        yield
    except (*HERE, EnvironmentFailure):
        raise
    except (Exception, SystemExit) as error:
        raise EnvironmentFailure(
            f"env: {type(family).__name__}.{method} failed for task {task.task_id[:12]} ({shown(task.instruction)}): "
            f"{one_line(f'{type(error).__name__}: {error}')}"
        ) from error


def _text(value: str, what: str) -> str:
    """A text that a tokenizer reads. Raises `TypeError`, and `UnicodeEncodeError` for half a surrogate pair."""
    require(value, str, what)
    value.encode()
    return value


def _require_each(oracle: Teacher, method: str, found: object, kind: type, actions: Sequence[str]) -> None:
    """Raise `EnvironmentFailure` unless a method gave a list with a value of a kind for each action."""
    kinds = (kind, np.bool_) if kind is bool else (kind,)
    right = isinstance(found, list | tuple) and [isinstance(value, kinds) for value in found]
    if right != [True] * len(actions):
        raise EnvironmentFailure(
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
