"""Whether the environment of a run is the one that the project is set to.

To make an environment is to start what its arguments name, e.g. a browser. A run may be somebody else's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlanything.config import load
from rlanything.core.errors import ConfigError
from rlanything.files.project import PARAMS, PRIVATE
from rlanything.repro import run_rules


def require_own(env: Mapping[str, Any], home: Path, project: Path, instead: str) -> None:
    """Raise `ConfigError` unless the section `env` of a run in `home` is that of the project.

    instead: what to do then, for the message."""
    params = _trusted(home, project) / PARAMS
    if load(params).env != dict(env):
        raise ConfigError(f"the run's section env is not that of {params}; {instead}")


def require_own_run(folder: Path, project: Path) -> None:
    """`require_own` for a run that is to be played again. folder: runs/<arm>/seed-<n>."""
    instead = "set it there to play a run that you trust"
    require_own(run_rules.own(folder).config.env, folder.resolve().parents[2], project, instead)


def _trusted(home: Path, project: Path) -> Path:
    """The folder whose params.yaml must have the run's environment: that of a workspace of the project, or the project.

    A run that was passed on may lie in a project that was passed on with it, so its own folder says nothing."""
    home, project = home.resolve(), project.resolve()
    return home if home.is_relative_to(project / PRIVATE) else project
