"""The errors of this project. Their class says who can do something about it; the command line prints their message.

An error that is not one of these is a defect of the program and keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RLAnythingError(Exception):
    """The root of all errors that this project raises on purpose."""


class UserError(RLAnythingError, ValueError):
    """What the user gave cannot be used: an argument, a configuration, a file. The message names what is allowed."""


class ConfigError(UserError):
    """The configuration or the project cannot be run as it is; the message lists every problem, one a line."""


class ModelOutputError(RLAnythingError, ValueError):
    """A model wrote something that cannot be used. The loop turns it into a value; it ends no run."""


class EnvironmentFailure(RLAnythingError, RuntimeError):
    """An environment did not do its part: an engine crashed, a sandbox gave no answer."""


class MachineError(RLAnythingError, RuntimeError):
    """The machine refuses: a process was killed, a program is missing. (A full disk is an `OSError`.)"""


def unknown(name: str, known: Iterable[str]) -> str:
    """'unknown; did you mean ...? Known: ...' for an error message."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"unknown; {hint}known: {', '.join(names)}"
