"""Reads from dvc.yaml the parameters and files that the results of a stage depend on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlanything.config import parse
from rlanything.core.errors import ConfigError, unknown
from rlanything.files.hashes import files_in
from rlanything.files.yaml_file import read_mapping
from rlanything.runs.imports import code_files, outside_files, packages, targets
from rlanything.runs.machine import versions
from rlanything.stages import BEFORE_TRAINING, EVALUATE, TRAIN
from rlanything.stages.declared import STAGES
from rlanything.stages.dependencies import Columns, folders
from rlanything.stages.stage import Stage

CODE = ("envs", "rlanything")
"""Folders of code. The files that a stage depends on are found from its imports."""


class Pipeline:
    """The stages of a project's dvc.yaml. DVC's own code fills their templates from a configuration."""

    def __init__(self, root: Path) -> None:
        """Raises `ConfigError` when there is no dvc.yaml, or one that cannot be read."""
        path = root / "dvc.yaml"
        if not path.is_file():
            raise ConfigError(f"{path}: no such file; run this in the project's folder, or use --root")
        self.root = root
        found = read_mapping(path).get("stages")
        if not isinstance(found, dict):
            raise ConfigError(f"{path}: it has no stages; `rlanything config pipeline` writes it")
        self.stages: Mapping[str, Any] = found

    def params(self, stage: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """Key -> value in `data` of every parameter that `stage` (`train@full`) depends on."""
        return {name: look_up(data, name) for name in self._resolve(stage, "params", data)}

    def files(self, stages: Iterable[str], data: Mapping[str, Any]) -> list[Path]:
        """The files that `stages` depend on and that no stage makes, sorted."""
        stages = list(stages)
        places = {self.root / dep for stage in stages for dep in self._resolve(stage, "deps", data)}
        places |= self._checkpoints(stages, data)
        elsewhere = {*self._outputs(), *CODE}
        kept = [p for p in places if not elsewhere & {*_first(p, self.root)}]
        return sorted({file for place in kept for file in _files(place)} | self._code(stages, data))

    def outside(self, stages: Iterable[str], data: Mapping[str, Any]) -> dict[str, Path]:
        """Name -> file of the code of `stages` outside of the project (`outside_of`)."""
        return {name: path for stage in _declared(stages) for name, path in outside_of(stage, data).items()}

    def packages(self, stages: Iterable[str], data: Mapping[str, Any]) -> dict[str, str]:
        """Name -> version of the packages that the code of `stages` imports, as a run's origin has them."""
        return versions(packages([name for stage in _declared(stages) for name in _modules(stage, data)]))

    def _code(self, stages: Iterable[str], data: Mapping[str, Any]) -> set[Path]:
        """The code of `stages`, with the classes that `data` names. They can differ from those in dvc.yaml."""
        found = [name for stage in _declared(stages) for name in code_of(stage, data)]
        return {place for name in found if (place := self.root / name).is_file()}

    def _checkpoints(self, stages: Iterable[str], data: Mapping[str, Any]) -> set[Path]:
        """The folders of checkpoints that `data` names for `stages`. They can differ from those in dvc.yaml."""
        loading, config = _declared(stages), parse(data)
        return {self.root / name for stage in loading for name in folders(self.root, *stage.loads(config))}

    def _resolve(self, name: str, section: str, data: Mapping[str, Any]) -> list[str]:
        """A list of a stage with its templates filled.

        An arm's dependencies are those that it has under `data`; one that the stage does not run for has those of
        `full`.
        """
        from dvc.parsing.context import Context

        stage, _, key = name.partition("@")
        body, context = self.stages[stage], dict(data)
        if "foreach" in body:
            items = {**body["foreach"], **_columns(stage, data)}
            item = items[key] if key in items else items.get("full")
            if item is None:
                raise ConfigError(f"{self.root / 'dvc.yaml'}: {stage}@{key}: {unknown(key, items)}")
            body, context = body["do"], {**context, "key": key, "item": item}
        return [str(entry) for entry in Context(context).resolve(body[section])]

    def _outputs(self) -> set[str]:
        """The top-level folders that stages write: data, models, runs ..."""
        bodies = [stage.get("do", stage) for stage in self.stages.values()]
        return {
            Path(next(iter(o)) if isinstance(o, dict) else o).parts[0]
            for b in bodies
            for o in b.get("outs", ())
        }


def trial_stages(arms: Sequence[str]) -> list[str]:
    """The stages that make tasks and base models, and train and evaluate these arms."""
    return [*BEFORE_TRAINING, *(f"{stage}@{arm}" for arm in arms for stage in (TRAIN, EVALUATE))]


def code_of(stage: Stage, data: Mapping[str, Any]) -> dict[str, Path]:
    """Name -> file of a stage's code, with the classes that it makes objects of under the configuration `data`."""
    return code_files(_modules(stage, data))


def outside_of(stage: Stage, data: Mapping[str, Any]) -> dict[str, Path]:
    """Name -> file of the code outside of the project of the classes that a stage makes. DVC does not see it."""
    return outside_files(_modules(stage, data))


def _modules(stage: Stage, data: Mapping[str, Any]) -> list[str]:
    """The dotted names of a stage's module and of the classes that it makes objects of."""
    return [stage.module, *targets([look_up(data, section) for section in stage.makes])]


def _declared(names: Iterable[str]) -> list[Stage]:
    """The declarations of stages that are named as in dvc.yaml, such as `train@full`."""
    wanted = {name.partition("@")[0] for name in names}
    return [stage for stage in STAGES if stage.name in wanted]


def _columns(stage: str, data: Mapping[str, Any]) -> dict[str, Columns]:
    """Arm -> what the stage's templates are filled with. dvc.yaml has those of the project's own configuration."""
    found = next((s for s in STAGES if s.name == stage), None)
    return {} if found is None or found.arms is None else dict(found.arms(parse(data)))


def look_up(data: Mapping[str, Any], name: str) -> Any:
    """The value at a dotted name; None if there is none."""
    found: Any = data
    for part in name.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(part)
    return found


def _first(place: Path, root: Path) -> tuple[str, ...]:
    """The first part of a path in the project; nothing for one outside of it."""
    return place.relative_to(root).parts[:1] if place.is_relative_to(root) else ()


def _files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    return list(files_in(place))
