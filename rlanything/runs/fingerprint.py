"""What a run is made from: configuration, code, and files, each by its hash, and the packages that it is made with.

The code and the packages are found from the imports of the stage (`runs/imports.py`), so no list has to be kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlanything.config import Config
from rlanything.core.ids import content_id
from rlanything.core.types import Json
from rlanything.files.hashes import file_hashes, files_in
from rlanything.runs.imports import code_hashes, packages, targets
from rlanything.runs.machine import versions

FOLDERS = ("data", "models")
FINAL = ("labels", "judges", "reward_policy", "solver", "solver_tries", "cooling")
"""Keys of `evaluate` that only the measurement of finished models reads."""
TRAIN = "rlanything.stages.train"
"""The module that makes a run."""


@dataclass(frozen=True)
class Origin:
    """Everything that a run depends on. Files are named by their path from the project's root."""

    config: Mapping[str, Json]
    """The part of the configuration that decides what the run is."""
    code: Mapping[str, str]
    inputs: Mapping[str, str]
    packages: Mapping[str, str]

    @property
    def fingerprint(self) -> str:
        """Names what the run is made from, on every machine."""
        return content_id({"config": self.config, "code": self.code, "inputs": self.inputs})

    @property
    def key(self) -> str:
        """Names the run on its way here: only the same run, made with the same packages, is resumed."""
        return content_id({"fingerprint": self.fingerprint, "packages": self.packages})


def made_from(config: Config, root: Path, arm: str) -> Origin:
    """What the arm's run would be made from now."""
    relevant = run_config(config, arm)
    code = [TRAIN, *targets(relevant)]
    inputs = file_hashes(root, input_files(config, root, arm))
    return Origin(relevant, code_hashes(code), inputs, versions(packages(code)))


def run_config(config: Config, arm: str) -> dict[str, Any]:
    """The part of the configuration that decides what the arm's run is: not the workers that share it, no logger."""
    relevant = config.model_dump(mode="json", by_alias=True, exclude={"arms", "scale", "bootstrap", "tasks"})
    for name in ("workers", "loggers"):
        relevant["train"].pop(name)
    for name in FINAL:
        relevant["evaluate"].pop(name)
    return {**relevant, "panels": config.tasks.measures, "arms": {arm: config.arm(arm).model_dump()}}


def input_files(config: Config, root: Path, arm: str) -> list[Path]:
    """Every file that the arm's run reads: tasks, models, and prompts."""
    found = [path for name in FOLDERS for path in files_in(root / name)]
    source = config.arm(arm).reward_from
    if source is not None:
        found += (root / "runs" / source).rglob("*.safetensors")
    return found + list(files_in(root / config.model.prompts))
