"""Plays the expert of a template: its commands, with items named by what they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rlanything.core.errors import EnvironmentFailure
from rlanything.core.protocols import Environment
from rlanything.core.types import Observation, StepResult

TRIES = 5
"""How often an item is looked for, a second apart."""
NAMED = re.compile(r"<(.+)>")
"""An item in a command of an expert, by what it is."""


class NotShown(EnvironmentFailure):
    """An item that the expert needs is not shown."""


def play(
    environment: Environment, first: Observation, commands: Iterable[str]
) -> Iterator[tuple[str, StepResult]]:
    """(command, result) of each step. Raises `NotShown` for an item that does not appear."""
    seen = first.text
    for command in commands:
        for _ in range(TRIES):
            numbered = named(command, seen)
            if numbered is not None:
                break
            result = environment.step("wait")
            seen = result.observation.text
            yield "wait", result
        else:
            raise NotShown(f"{command}: not in sight:\n{seen}")
        result = environment.step(numbered)
        seen = result.observation.text
        yield numbered, result


def named(command: str, seen: str) -> str | None:
    """A command with the number of its item, or None where the item is not in what is seen."""
    found = NAMED.search(command)
    if found is None or not command.startswith(("click", "double", "right", "hover")):
        return command
    line = next((line for line in seen.splitlines() if line.partition("] ")[2].startswith(found[1])), None)
    return None if line is None else command.replace(found[0], line[1:].partition("]")[0])
