"""A stage under other values than the recorded ones, in a workspace of its own.

Tasks and base models are the project's where they would come out the same, as those of a sweep's trials are. Otherwise
they are made once, in .rla/inputs/<key>/. A workspace that `make repro` filled has its own, and its own sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from rlanything.config import Config
from rlanything.core.errors import ConfigError
from rlanything.core.ids import content_id
from rlanything.files.project import PARAMS, PRIVATE
from rlanything.files.yaml_file import mapping, read_mapping
from rlanything.planning import compose
from rlanything.planning.uncommitted import few
from rlanything.runs.provenance import changed, flat
from rlanything.stages import TASKS
from rlanything.stages.missing import Command, run_command, stage_of
from rlanything.sweep.trials.inputs import (
    MADE,
    SOURCES,
    Inputs,
    link,
    missing_inputs,
    removed_on_error,
    sources,
)
from rlanything.workspaces import places
from rlanything.workspaces.unchanged import unchanged


@dataclass(frozen=True)
class Trial:
    """A workspace and where its tasks and base models are."""

    name: str
    root: Path
    config: Config
    inputs: Path
    shared: Inputs | None = field(default=None, compare=False)
    """What made the name of `inputs`, which other trials use too; None: they are the workspace's own."""


def trial_name(overrides: Sequence[str]) -> str:
    """The name of the workspace of these overrides: the same for every command with the same ones, in any order."""
    return f"trial-{content_id(sorted(overrides))[:8]}"


def named(project: Path, overrides: Sequence[str], name: str = "") -> Path:
    """The folder of the trial, made or not. Raises `ConfigError` for a name that cannot be one."""
    return places.free(name or trial_name(overrides), project)


def prepare(project: Path, params: Path, overrides: Sequence[str], name: str = "") -> Trial:
    """Make the workspace, or find it again. Raises `ConfigError` for one of this name with another configuration."""
    place = named(project, overrides, name)
    name = place.name
    data = compose.compose(overrides, project)
    file = place / PARAMS
    if file.is_file():
        _check_same(file, compose.text(data, overrides))
    config = compose.checked(data, project)
    if _has_own(place, SOURCES):
        return Trial(name, place, config, place)
    inputs = Inputs.of(project, params, project / PRIVATE / "inputs")
    found = inputs.place(config)
    place.mkdir(parents=True, exist_ok=True)
    link(place, project, sources(config, project))
    link(place, found, MADE)
    if not file.is_file():  # in another order of the overrides the same values would have another header
        compose.write(file, overrides, project)
    if found != project:
        inputs.prepare(found, overrides)
    return Trial(name, place, config, found, inputs)


def _check_same(file: Path, text: str) -> None:
    """Raise `ConfigError` where the configuration of a workspace has other values than `text`."""
    found = changed(flat(read_mapping(file)), flat(mapping(file, text)))
    if found:
        raise ConfigError(
            f"{file}: this workspace has another configuration ({few(found)}; `rlanything ls`); "
            "give the trial another name with --workspace, or remove the folder"
        )


def _has_own(place: Path, names: Sequence[str]) -> bool:
    return any((place / name).is_dir() and not (place / name).is_symlink() for name in names)


def make_inputs(trial: Trial, stage: str) -> list[str]:
    """Make the tasks and base models that `stage` needs, itself included, and that are missing.

    Returns the stages that ran. Raises `ConfigError` where code, prompts or parameters changed while one ran; what it
    made is then removed.
    """
    ran = []
    for command in missing_inputs(trial.inputs):
        if stage == TASKS and command[0] != TASKS:
            break
        if trial.shared is None:
            _make_own(trial, command)
        else:
            trial.shared.make(trial.config, trial.inputs, command)
        ran.append(command[0])
    return ran


def _make_own(trial: Trial, command: Command) -> None:
    """Run a command in a workspace with sources of its own."""
    checked = unchanged(stage_of(command), trial.config, trial.root, "", trial.root / PARAMS)
    with ExitStack() as stack:
        stack.enter_context(checked)
        run_command(trial.config, trial.root, command)
        with removed_on_error(trial.root, command):
            stack.close()
