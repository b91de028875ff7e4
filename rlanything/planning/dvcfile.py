"""Writes dvc.yaml from the declared stages, the configuration and the imports of each stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from rlanything.config import Config
from rlanything.core.errors import ConfigError
from rlanything.core.types import Json
from rlanything.files.atomic import write_text
from rlanything.planning.pipeline import CODE, Pipeline, code_of, look_up
from rlanything.runs.imports import targets, whole_folders
from rlanything.stages.declared import PICTURES, STAGES
from rlanything.stages.dependencies import folders
from rlanything.stages.stage import Stage
from rlanything.targets import TARGET, is_outside

NAME = "dvc.yaml"
HEADER = """\
# The pipeline: tasks -> bootstrap -> train (each arm) -> evaluate (each arm and the base) -> report.
# Written by
#     rlanything config pipeline
# Do not edit. Stages are declared in rlanything/stages/declared.py; the code that a stage depends on is found from its
# imports. Write this file again after a change of an import, a stage, or the class of an environment or engine.
"""


def write(root: Path, config: Config) -> bool:
    """Bring dvc.yaml up to date. Returns whether its content changed. An unchanged file is not written."""
    path, new = root / NAME, text(config, root)
    if path.is_file() and path.read_text() == new:
        return False
    write_text(path, new)
    return True


def text(config: Config, root: Path = Path()) -> str:
    """The content of dvc.yaml for this configuration of the project at `root`."""
    stages = {stage.name: _entry(stage, config, root) for stage in STAGES if stage.needed(config)}
    return HEADER + yaml.dump(
        {"stages": stages, "plots": list(PICTURES)}, Dumper=_Plain, sort_keys=False, width=110
    )


def code(stage: Stage, config: Config) -> list[str]:
    """The files and whole folders of code that a stage depends on, including the classes that it makes objects of."""
    return whole_folders(code_of(stage, config.model_dump(mode="json", by_alias=True)))


def unseen(config: Config) -> list[str]:
    """A sentence for each class whose code DVC does not see, because it lies outside of the project."""
    made = {section for stage in STAGES for section in stage.makes}
    return [
        f"{name}.{TARGET} = {section[TARGET]!r}: its code lies outside of the project, so DVC does not see when it "
        "changes. After a change, run `dvc repro --force`"
        for name, section in config.named().items()
        if any(f"{name}.".startswith(f"{part}.") for part in made) and is_outside(section)
    ]


def check(root: Path, config: Config) -> None:
    """Raise `ConfigError` where the project's dvc.yaml is not that of this configuration's arms and classes.

    `dvc exp run -S` writes params.yaml alone. DVC would then skip stages whose results depend on what it does not know
    of. Files that code imports are not compared, and what its user added is allowed. A project without dvc.yaml passes.
    """
    if not (root / NAME).is_file():
        return
    there = Pipeline(root).stages
    found = [(stage.name, _stale(stage, config, root, there)) for stage in STAGES]
    if old := [f"{name} ({what})" for name, what in found if what]:
        raise ConfigError(
            f"{root / NAME}: it was written for other arms, classes or switches than those of params.yaml, so DVC "
            f"would take old results for those of today: {', '.join(old)}. Write it with `rlanything config write "
            "KEY=VALUE ...`, with the values of `-S` (or with `rlanything config pipeline` where params.yaml has "
            "them), and then run the same command again"
        )


def _stale(stage: Stage, config: Config, root: Path, there: Mapping[str, Any]) -> str:
    """What of a stage in dvc.yaml does not follow from the configuration; '' where all does."""
    found = there.get(stage.name)
    if not stage.needed(config):
        return "" if found is None else "not needed"
    if not isinstance(found, dict):
        return "missing"
    body = found.get("do", found)
    deps = [str(dep) for dep in body.get("deps", ())]
    there_are, wanted = found.get("foreach") or {}, _columns(stage, config)
    if arms := [name for name in {**wanted, **there_are} if there_are.get(name) != wanted.get(name)]:
        return f"arms: {', '.join(arms)}"
    if lacking := {*stage.params_for(config)}.difference(map(str, body.get("params", ()))):
        return f"without the params {', '.join(sorted(lacking))}"
    if lacking := {*_without_code(_given(stage, config, root))}.difference(deps):
        return f"without the deps {', '.join(sorted(lacking))}"
    return next((f"class: {name}" for name in _made(stage, config) if not _covered(name, deps)), "")


def _without_code(deps: Sequence[str]) -> list[str]:
    return [dep for dep in deps if Path(dep).parts[0] not in CODE]


def _made(stage: Stage, config: Config) -> list[str]:
    """The project's classes that the stage makes objects of, by their dotted names."""
    data = config.model_dump(mode="json", by_alias=True)
    named = targets([look_up(data, section) for section in stage.makes])
    return [name for name in named if name.partition(".")[0] in CODE]


def _covered(name: str, deps: Sequence[str]) -> bool:
    """Whether a class's file, or a folder above it, is among the dependencies."""
    module = Path(*name.split(".")[:-1])
    places = {module, *module.parents, module / "__init__"}
    return any(Path(dep.removesuffix(".py")) in places for dep in deps)


def _entry(stage: Stage, config: Config, root: Path) -> dict[str, Any]:
    body = dict(_body(stage, config, root))
    if stage.arms is None:
        return body
    return {"foreach": _columns(stage, config), "do": body}


def _columns(stage: Stage, config: Config) -> dict[str, dict[str, str]]:
    arms = stage.arms(config) if stage.arms is not None else {}
    return {name: dict(columns) for name, columns in arms.items()}


def _given(stage: Stage, config: Config, root: Path) -> list[str]:
    """What a stage depends on beside code and parameters."""
    return [*stage.deps(config), *folders(root, *stage.loads(config))]


def _body(stage: Stage, config: Config, root: Path) -> Iterator[tuple[str, Json]]:
    yield "desc", stage.about
    yield "cmd", f"python -m rlanything {stage.name}" + ("" if stage.arms is None else " --arm ${key}")
    yield "deps", [*_given(stage, config, root), *code(stage, config)]
    yield "params", stage.params_for(config)
    for kind, outputs in (("outs", stage.outs), ("metrics", stage.metrics), ("plots", stage.plots)):
        if outputs:
            yield kind, list(outputs)


class _Plain(yaml.SafeDumper):
    """A YAML dumper without aliases: a list that occurs twice is written twice."""

    def ignore_aliases(self, data: Any) -> bool:
        """Aliases would make dvc.yaml harder to read."""
        return True
