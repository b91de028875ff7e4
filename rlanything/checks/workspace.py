"""The workspace of a check: a small project in which the pipeline's stages run, one after the other.

    .rla/checks/<name>-<key>/    params.yaml, links to experiments/, envs/, data/ and models/; runs/, evaluation/
    .rla/checks/inputs/<key>/    tasks and base models that the project itself does not have, and the ceiling's

`key` is a hash of the declaration and of everything that its stages depend on. The same command goes on after a kill:
what is there is not made again, and training resumes at its last published iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rlanything.checks.expert import measure_expert
from rlanything.checks.training import CEILING, EXPERT, Training
from rlanything.config import BASE, BASE_COOLED, Checkpoint, Config, parse
from rlanything.core.ids import content_id
from rlanything.files import atomic, hashes
from rlanything.files.project import PARAMS, PRIVATE
from rlanything.files.records import write_json
from rlanything.planning import check, compose
from rlanything.runs.imports import code_hashes
from rlanything.runs.layout import Layout
from rlanything.stages import EVALUATE, LABEL
from rlanything.stages.cooling import measure_cooled
from rlanything.stages.missing import Command, missing_runs, run_command
from rlanything.sweep.trials.inputs import MADE, Inputs, link, missing_inputs, sources
from rlanything.sweep.trials.key import Key

FOLDER = Path(PRIVATE, "checks")
SHOWN = 8
"""Digits of the key in a workspace's name."""
AGAIN = "remove it and start the same command again"
"""What to do about a result of a workspace that cannot be read."""


@dataclass(frozen=True)
class Task:
    """Something that still has to be done. `work` goes on where an earlier start was killed."""

    title: str
    work: Callable[[], None]
    made: Path | None = None
    """What it makes, where it does not itself compare code and inputs before it leaves a result there."""

    def forget(self) -> None:
        """Remove what it made."""
        if self.made is None:
            return
        if self.made.is_dir():
            atomic.remove(self.made)
        else:
            self.made.unlink(missing_ok=True)


@dataclass(frozen=True)
class Workspace:
    """Where a check runs."""

    root: Path
    """Its folder, a small project."""
    project: Path
    declared: Training
    config: Config
    inputs: Inputs
    workers: int
    pinned: tuple[str, ...] = ()
    """Hydra overrides on top of the declared ones."""

    @classmethod
    def of(
        cls,
        name: str,
        declared: Training,
        project: Path,
        params: Path,
        workers: int,
        pinned: tuple[str, ...] = (),
    ) -> Workspace:
        """The workspace of a declared check, checked against the project. Makes nothing. Raises `ConfigError`."""
        config = parse(compose.compose([*declared.hydra_overrides(workers), *pinned], project))
        check.check(config, project, engine=False)
        declared.check(config)
        inputs = Inputs.of(project, params, project / FOLDER / "inputs")
        space = cls(project, project, declared, config, inputs, workers, pinned)
        if declared.ceiling is not None:
            space.ceiling_config()
        return replace(space, root=project / FOLDER / f"{name}-{space.key(config)[:SHOWN]}")

    @property
    def overrides(self) -> list[str]:
        """The Hydra overrides of the whole check."""
        return [*self.declared.hydra_overrides(self.workers), *self.pinned]

    def key(self, config: Config) -> str:
        """A hash of what is trained, the configuration, the code and the inputs; not of the workers."""
        data = config.model_dump(mode="json", by_alias=True)
        common = {**data, "train": {k: v for k, v in data["train"].items() if k != "workers"}}
        key = asdict(Key.of(self.declared.trained, data, self.inputs))
        own = code_hashes([__name__])  # what runs the controls
        return content_id({**key, "own": own, "config": common, "declared": self.declared.making()})

    def is_current(self) -> bool:
        """Whether the key of this moment is that in the folder's name.

        Raises `ConfigError` where the project can no longer be composed.
        """
        hashes.forget()
        now = self.key(parse(compose.compose(self.overrides, self.project)))
        return self.root.name.endswith(f"-{now[:SHOWN]}")

    def ceiling_overrides(self) -> list[str]:
        """The check's overrides with the ceiling's on top."""
        assert self.declared.ceiling is not None
        return [*self.overrides, *self.declared.ceiling.overrides]

    def ceiling_config(self) -> Config:
        """The configuration under which the ceiling is supervised. Raises `ConfigError`."""
        return parse(compose.compose(self.ceiling_overrides(), self.project))

    def prepare(self) -> None:
        """Write params.yaml and the links."""
        self.root.mkdir(parents=True, exist_ok=True)
        compose.write(self.root / PARAMS, self.overrides, self.project)
        link(self.root, self.project, sources(self.config, self.project))
        link(self.root, self.inputs.place(self.config), MADE)

    def tasks(self) -> Iterator[Task]:
        """Everything that is still to do, in order."""
        yield from self._making(self.config, self.overrides, "")
        if self.declared.ceiling is not None and not self._measured(CEILING):
            yield from self._making(self.ceiling_config(), self.ceiling_overrides(), " of the ceiling")
        cooled = [BASE_COOLED] if self.config.evaluate.cooling is not None else []
        arms = (BASE, *cooled, *self.declared.trained)
        for command in missing_runs(self.config, self.root, arms):
            work = partial(run_command, self.config, self.root, command)
            yield Task(f"{command[0]} {command[-1]}", work, self._result(command))
        if self.declared.ceiling is not None and not self._measured(CEILING):
            yield self._measuring(CEILING, self._ceiling)
        if self.declared.expert and not self._measured(EXPERT):
            yield self._measuring(EXPERT, lambda: measure_expert(self.config, self.root))

    def _result(self, command: Command) -> Path | None:
        """What `Task.made` is of a command of `missing_runs`."""
        layout, (stage, *words) = Layout(self.root), command
        return {LABEL: layout.labels, EVALUATE: layout.evaluation(words[-1] if words else "")}.get(stage)

    def _measuring(self, name: str, measure: Callable[[], Mapping[str, Any]]) -> Task:
        place = Layout(self.root).evaluation(name)

        def work() -> None:
            atomic.clear_leftovers(place)
            write_json(place, {"arm": name, **measure()})

        return Task(f"the {name}", work, place)

    def _making(self, config: Config, overrides: list[str], whose: str) -> Iterator[Task]:
        """Tasks and base models that are not there."""
        place = self.inputs.place(config)
        for command in missing_inputs(place):
            yield Task(f"{command[0]}{whose}", partial(self._make, config, place, overrides, command))

    def _make(self, config: Config, place: Path, overrides: list[str], command: Command) -> None:
        self.inputs.prepare(place, overrides)
        self.inputs.make(config, place, command)

    def _ceiling(self) -> dict[str, Any]:
        """The ceiling on the panels, at its own best temperature."""
        config = self.ceiling_config()
        place = self.inputs.place(config) / config.model.policy.path
        return measure_cooled(self.config, self.root, Checkpoint(path=str(place.resolve())), config)

    def _measured(self, name: str) -> bool:
        return Layout(self.root).evaluation(name).is_file()
