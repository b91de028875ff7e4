"""Writes dvc.yaml from the declared stages, the configuration and the imports of each stage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from rlanything.config import Config
from rlanything.core.types import Json
from rlanything.files.atomic import write_text
from rlanything.planning.pipeline import code_of
from rlanything.runs.imports import whole_folders
from rlanything.stages.declared import PICTURES, STAGES
from rlanything.stages.dependencies import folders
from rlanything.stages.stage import Stage

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


def _entry(stage: Stage, config: Config, root: Path) -> dict[str, Any]:
    body = dict(_body(stage, config, root))
    if stage.arms is None:
        return body
    arms = {name: dict(columns) for name, columns in stage.arms(config).items()}
    return {"foreach": arms, "do": body}


def _body(stage: Stage, config: Config, root: Path) -> Iterator[tuple[str, Json]]:
    yield "desc", stage.about
    yield "cmd", f"python -m rlanything {stage.name}" + ("" if stage.arms is None else " --arm ${key}")
    yield "deps", [*stage.deps(config), *folders(root, *stage.loads(config)), *code(stage, config)]
    yield "params", stage.params_for(config)
    for kind, outputs in (("outs", stage.outs), ("metrics", stage.metrics), ("plots", stage.plots)):
        if outputs:
            yield kind, list(outputs)


class _Plain(yaml.SafeDumper):
    """A YAML dumper without aliases: a list that occurs twice is written twice."""

    def ignore_aliases(self, data: Any) -> bool:
        """Aliases would make dvc.yaml harder to read."""
        return True
