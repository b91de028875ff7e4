"""A stage under other values than the recorded ones, in a workspace of its own.

Tasks and base models are the project's where they would come out the same, as those of a sweep's trials are. Otherwise
they are made once, in .rla/inputs/<key>/.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlanything.config import Config
from rlanything.core.errors import ConfigError
from rlanything.core.ids import content_id
from rlanything.files.reader import read_text
from rlanything.planning import compose
from rlanything.stages.missing import run_command
from rlanything.sweep.trials.inputs import MADE, SOURCES, Inputs, link, missing_inputs
from rlanything.workspaces import places


@dataclass(frozen=True)
class Trial:
    """A workspace and where its tasks and base models are."""

    name: str
    root: Path
    config: Config
    inputs: Path


def trial_name(overrides: Sequence[str]) -> str:
    """The name of the workspace of these overrides: the same for every command with the same ones, in any order."""
    return f"trial-{content_id(sorted(overrides))[:8]}"


def prepare(project: Path, params: Path, overrides: Sequence[str], name: str = "") -> Trial:
    """Make the workspace, or find it again. Raises `ConfigError` for one of this name with another configuration."""
    name = name or trial_name(overrides)
    place = places.free(name, project)
    data = compose.compose(overrides, project)
    text = compose.text(data, overrides)
    file = place / compose.PARAMS
    if file.is_file() and read_text(file) != text:
        raise ConfigError(
            f"{file}: this workspace has another configuration (`rlanything ls`); give the trial another name with "
            "--workspace, or remove the folder"
        )
    config = compose.checked(data, project)
    inputs = Inputs.of(project, params, project / places.FOLDER / "inputs")
    found = inputs.place(config)
    place.mkdir(parents=True, exist_ok=True)
    link(place, project, SOURCES)
    link(place, found, MADE)
    compose.write(file, overrides, project)
    if found != project:
        inputs.prepare(found, overrides)
    return Trial(name, place, config, found)


def make_inputs(trial: Trial) -> list[str]:
    """Make the tasks and base models that are missing. Returns the stages that ran."""
    ran = []
    for command in missing_inputs(trial.inputs):
        run_command(trial.config, trial.inputs, command)
        ran.append(command[0])
    return ran


def require_own(root: Path, stage: str) -> None:
    """Raise `ConfigError` where tasks and base models belong to another folder, which `stage` would write to."""
    for name in MADE:
        path = root / name
        if path.is_symlink():
            raise ConfigError(
                f"{path}: a link to {path.resolve()}: `rlanything {stage}` would change another folder's results; "
                f"run it in {path.resolve().parent}"
            )
