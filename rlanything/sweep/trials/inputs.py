"""Tasks and base models of trials: the project's own, or made once for all trials with the same parameters."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlanything.config import Config, load
from rlanything.core.errors import ConfigError
from rlanything.core.ids import content_id
from rlanything.files import atomic, hashes
from rlanything.files.hashes import digest
from rlanything.files.project import PARAMS, PRIVATE
from rlanything.planning import compose
from rlanything.planning.pipeline import Pipeline
from rlanything.runs.layout import Layout
from rlanything.runs.provenance import changed, flat
from rlanything.stages import BEFORE_TRAINING, BOOTSTRAP, TASKS
from rlanything.stages.missing import Command, run_command, stage_of
from rlanything.sweep.trials.recorded import same

MADE = ("data", "models")
"""Folders with tasks and base models."""
SOURCES = ("experiments", "envs")
"""Folders of the project that every command reads."""
WRITTEN = (*MADE, "runs", "labels", "evaluation", "provenance", "report", PRIVATE, PARAMS)
"""What a trial writes, or has links to elsewhere for."""


@dataclass(frozen=True)
class Inputs:
    """Where the tasks and base models of trials are."""

    root: Path
    folder: Path
    pipeline: Pipeline
    project: Config | None
    """What the project's own data/ and models/ were made from; None where they are not there, or would come out
    otherwise today."""

    @classmethod
    def of(cls, root: Path, params: Path, folder: Path, *, older: bool = False) -> Inputs:
        """`params`: the project's configuration. `folder`: where inputs are made that the project does not have.

        older: whether the project's own count where older code made them, as for a comparison of bytes or settings.
        """
        pipeline, made = Pipeline(root), params.is_file() and not missing_inputs(root)
        project = load(params) if made else None
        if project is not None and not same(project, pipeline, older=older):
            project = None
        return cls(root, folder, pipeline, project)

    def key(self, config: Config) -> str:
        """A hash of everything that tasks and base models depend on."""
        data = config.model_dump(mode="json", by_alias=True)
        params = [self.pipeline.params(stage, data) for stage in BEFORE_TRAINING]
        files = [digest(file) for file in self.pipeline.files(BEFORE_TRAINING, data)]
        return content_id({"params": params, "files": files})[:16]

    def place(self, config: Config) -> Path:
        """The folder with data/ and models/ for this configuration, whether they are made yet or not."""
        if self.project is not None and self.key(config) == self.key(self.project):
            return self.root
        return self.folder / self.key(config)

    def differences(self, config: Config, made: Config) -> list[str]:
        """What is other in this configuration than in `made`, from which tasks and base models were made, by key.

        Empty where they would come out the same.
        """
        if self.key(config) == self.key(made):
            return []
        before, now = (self._params(one) for one in (config, made))
        return changed(before, now)

    def _params(self, config: Config) -> dict[str, Any]:
        data = config.model_dump(mode="json", by_alias=True)
        return flat({k: v for stage in BEFORE_TRAINING for k, v in self.pipeline.params(stage, data).items()})

    def prepare(self, place: Path, overrides: Sequence[str]) -> None:
        """Make the folder in which the commands of `missing_inputs` can run."""
        place.mkdir(parents=True, exist_ok=True)
        link(place, self.root, SOURCES)
        config = compose.write(place / PARAMS, overrides, self.root)
        link(place, self.root, sources(config, self.root))

    def make(self, config: Config, place: Path, command: Command) -> None:
        """Run one of `missing_inputs` at a place of `folder`, whose name is the key of what the results depend on.

        Raises `ConfigError` where the key is another one afterwards. What the command made is removed then.
        """
        run_command(config, place, command)
        with removed_on_error(place, command):
            hashes.forget()
            if self.key(config) != place.name:
                raise ConfigError(
                    f"changed while {command[0]} ran: code, prompts or parameters of tasks and base models. What it "
                    f"made may be of the one or the other: removed from {place}. The same command makes it again"
                )


@contextmanager
def removed_on_error(place: Path, command: Command) -> Iterator[None]:
    """Remove what a command has made at `place` where the block, which checks it, does not end well."""
    try:
        yield
    except BaseException:
        for made in (place / name.replace("${key}", command[-1]) for name in stage_of(command).made):
            if made.is_dir():
                atomic.remove(made)
            else:
                made.unlink(missing_ok=True)
        raise


def missing_inputs(place: Path) -> list[Command]:
    """The commands that still have to run at `place`."""
    layout = Layout(place)
    done = {TASKS: layout.manifest.is_file(), BOOTSTRAP: layout.bootstrap.is_file()}
    return [(stage,) for stage in BEFORE_TRAINING if not done[stage]]


def sources(config: Config, root: Path) -> list[str]:
    """What commands read of the project at `root`: `SOURCES`, and the first part of every path in it that the
    configuration names, unless a trial has that itself."""
    parts = [Path(path).parts for path in _paths(config) if (root / path).exists()]
    first = [p[0] for p in parts if p and p[0] not in (os.sep, os.pardir, *WRITTEN)]
    return list(dict.fromkeys([*SOURCES, *first]))


def _paths(config: Config) -> Iterator[str]:
    model, samplers = config.model, config.evaluate.samplers
    for checkpoint in (model.policy, model.reward, model.adapter, *samplers):
        yield checkpoint.path
    for path in (config.tasks.start, model.prompts, *(sampler.prompts for sampler in samplers)):
        if path is not None:
            yield path


def link(folder: Path, target: Path, names: Sequence[str]) -> None:
    """Link names in `folder` to those in `target`, relatively: the links hold on another machine too.

    Raises `ConfigError` before it links anything where something that is no link has such a name.
    """
    for name in names:
        if (folder / name).exists() and not (folder / name).is_symlink():
            raise ConfigError(
                f"{folder / name}: it is no link to {target / name}, as which it would be made; move it away"
            )
    for name in names:
        place, wanted = folder / name, os.path.relpath(target / name, folder)
        if place.is_symlink() and os.readlink(place) == wanted:
            continue
        place.unlink(missing_ok=True)
        place.symlink_to(wanted)
