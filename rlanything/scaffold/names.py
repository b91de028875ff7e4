"""What an environment can be called: its name becomes a package, a file of the configuration and a word in commands."""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
from pathlib import Path

from rlanything.core.errors import ConfigError

FORM = re.compile(r"[a-z][a-z0-9_]{0,23}")
ALLOWED = "a name begins with a letter and has at most 24 lower-case letters, digits and _"
VALUES = frozenset({"null", "true", "false", "inf", "nan"})
"""Words that `env=WORD` would read as a value, not as a name."""


def check_name(name: str, root: Path) -> None:
    """Raise `ConfigError` for a name that no environment of the project at `root` can have."""
    if not FORM.fullmatch(name):
        raise ConfigError(f"environment {name!r}: {ALLOWED}{_near(name)}")
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        raise ConfigError(f"environment {name!r}: a keyword of Python; choose another name")
    if name in VALUES:
        raise ConfigError(
            f"environment {name!r}: env={name} is read as a value, not as a name; choose another one"
        )
    if (module := root / "envs" / f"{name}.py").exists():
        raise ConfigError(f"environment {name!r}: its package would hide {module}; choose another name")
    if name in sys.stdlib_module_names or importlib.util.find_spec(name) is not None:
        raise ConfigError(
            f"environment {name!r}: a program that runs in envs/ would import it in place of Python's or an "
            f"installed {name!r}; choose another name"
        )


def title(name: str) -> str:
    """The beginning of the names of its classes: Maze for maze, DarkRoom for dark_room."""
    return "".join(part.capitalize() for part in name.split("_"))


def _near(name: str) -> str:
    near = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_0123456789")[:24]
    return f"; did you mean {near!r}?" if FORM.fullmatch(near) else ""
