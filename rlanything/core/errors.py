"""The errors of this project. The class says where the cause of an error lies. The command line prints the message.

Any other exception is a bug in the program and is printed with its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RLAnythingError(Exception):
    """The root of all errors that this project raises on purpose."""


class UserError(RLAnythingError, ValueError):
    """An argument, a configuration or a file of the user cannot be used. The message says what is allowed."""


class ConfigError(UserError):
    """The configuration or the project cannot be run as it is; the message lists every problem, one a line."""


class ModelOutputError(RLAnythingError, ValueError):
    """A model's reply cannot be used. The loop catches this error and records it as a value, so it never ends a run."""


class EnvironmentFailure(RLAnythingError, RuntimeError):
    """An environment failed: its game engine crashed, or its sandbox gave no answer."""


class MachineError(RLAnythingError, RuntimeError):
    """The machine failed: a process was killed, a program is missing, a file is damaged.

    A full disk is an `OSError`.
    """


def unknown(name: str, known: Iterable[str]) -> str:
    """'unknown; did you mean ...? Known: ...' for an error message."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"unknown; {hint}known: {', '.join(names)}"
