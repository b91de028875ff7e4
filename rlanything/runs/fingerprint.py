"""What a run is made from: configuration, code, and files, each by its hash.

The code is found from the imports of the stage (`runs/imports.py`), so no list has to be kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlanything.config import Config
from rlanything.core.ids import content_id
from rlanything.runs.hashes import code_hashes, file_hashes

FOLDERS = ("data", "models")
TRAIN = "rlanything.stages.train"
"""The module that makes a run."""


def made_from(config: Config, root: Path, arm: str) -> dict[str, Any]:
    """Everything that the arm's run depends on, and `fingerprint`, which names it: only the same run is resumed.

    `config` is whole, so that it can be read as a configuration again; the fingerprint is over `run_config`.
    """
    relevant = run_config(config, arm)
    code, inputs = code_hashes(TRAIN, relevant), input_hashes(config, root, arm)
    key = content_id({"config": relevant, "code": code, "inputs": inputs})
    whole = config.model_dump(mode="json", by_alias=True)
    return {"fingerprint": key, "config": whole, "code": code, "inputs": inputs}


def run_config(config: Config, arm: str) -> dict[str, Any]:
    """The part of the configuration that decides what the arm's run is: not the workers that share it, no logger."""
    relevant = config.model_dump(mode="json", by_alias=True, exclude={"arms", "scale", "bootstrap", "tasks"})
    for name in ("workers", "loggers"):
        relevant["train"].pop(name)
    return {**relevant, "arms": {arm: config.arm(arm).model_dump()}}


def input_hashes(config: Config, root: Path, arm: str) -> dict[str, str]:
    """sha256 of every file that the arm's run reads, by its path from the project's root."""
    return file_hashes(root, _inputs(config, root, arm))


def _inputs(config: Config, root: Path, arm: str) -> list[Path]:
    found = [path for name in FOLDERS for path in (root / name).rglob("*") if path.is_file()]
    source = config.arm(arm).reward_from
    if source is not None:
        found += (root / "runs" / source).rglob("*.safetensors")
    return found + list((root / config.model.prompts).glob("*.txt"))
