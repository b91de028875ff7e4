"""The errors of this project. The class says where the cause of an error lies. The command line prints the message.

Any other exception is a bug in the program and is printed with its traceback.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable

FIRST_RUN = "`rlanything train --arm full` makes one, after `rlanything tasks` and `rlanything bootstrap`"
NO_RUN = f"this project has no run yet; `make repro` makes all of the repository's. {FIRST_RUN}"
START = 3
"""Letters from which the beginning of a name is taken for that name."""
_COMMAND = re.compile(r"`rlanything (?!--|ls`)")
"""How a message names a command of this program. The list of workspaces is the same in each."""


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
    longer = [each for each in names if len(name) >= START and each.lower().startswith(name.lower())]
    near = longer or difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"unknown; {hint}known: {', '.join(names)}"


def unknown_run(name: str, known: Iterable[str]) -> str:
    """As `unknown`, of the name of a run or its arm; how to make the first one where there is none."""
    names = list(known)
    return unknown(name, names) if names else NO_RUN


def in_workspace(text: str, name: str) -> str:
    """A message whose commands name the workspace in which a command failed, so that they work as they stand.

    Rooms name commands as they are in the project, because they do not know in which folder they work. name: '' for the
    project itself.
    """
    words = shlex.join(["rlanything", "--workspace", name])
    return _COMMAND.sub(lambda _: f"`{words} ", text) if name else text
