"""The types of what an environment returns: a value of another type is an error of the environment, and no data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlanything.core.images import Image
from rlanything.core.types import Observation, StepResult

SIMPLE = (bool, int, float, str, type(None))
"""Types whose values are shown in a message. Others may show an address, which is another one in every process."""
LONGEST = 60


def require_observation(observation: Observation, method: str) -> Observation:
    """The same, with its actions and images as tuples.

    Raises `TypeError` for a value of another type, and `UnicodeEncodeError` for half a surrogate pair: no tokenizer has
    an id for it. method: which returned it.
    """
    require(observation, Observation, method)
    require(observation.text, str, f"{method}: text")
    for name, kind in (("actions", str), ("images", Image)):
        values = getattr(observation, name)
        if not isinstance(values, tuple | list):  # a generator is used up, and a set has no order
            raise TypeError(f"{method}: {name} is {shown(values)}; a tuple is wanted")
        for value in values:
            require(value, kind, f"{method}: one of {name}")
    for text in (observation.text, *observation.actions):
        text.encode()
    return replace(observation, actions=tuple(observation.actions), images=tuple(observation.images))


def require_result(result: StepResult, method: str) -> StepResult:
    """The same, with its observation as `require_observation` gives it. Raises what that raises."""
    require(result, StepResult, method)
    done, success = _truth(result.done, f"{method}: done"), _truth(result.success, f"{method}: success")
    observation = require_observation(result.observation, method)
    return replace(result, observation=observation, done=done, success=success)


def _truth(value: object, what: str) -> bool:
    """A truth value as a bool, NumPy's too. Raises `TypeError` for anything else."""
    if not isinstance(value, np.bool_):
        require(value, bool, what)
    return bool(value)


def shown(value: object) -> str:
    """A value in a message, with its type."""
    kind = f"of type {type(value).__name__}"
    return f"{repr(value)[:LONGEST]}, {kind}" if isinstance(value, SIMPLE) else kind


def require(value: object, kind: type, what: str) -> None:
    """Raise `TypeError` for what is not of a type."""
    if not isinstance(value, kind):
        raise TypeError(f"{what} is {shown(value)}; {kind.__name__} is wanted")
