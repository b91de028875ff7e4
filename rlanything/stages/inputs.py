"""What a run is made from: configuration, code, and files, each by its hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rlanything.config import Config
from rlanything.core.ids import content_id

FOLDERS = ("data", "models")
CODE = ("config.py", "core", "buffer", "engines", "loop", "learn", "stages")
_PACKAGE = Path(__file__).resolve().parents[1]


def made_from(config: Config, root: Path, arm: str) -> dict[str, Any]:
    """Everything that the arm's run depends on, and `fingerprint`, which names it: only the same run is resumed.

    `config` is whole, so that it can be read as a configuration again; the fingerprint is over `run_config`.
    """
    code, inputs = code_hashes(root), input_hashes(config, root, arm)
    key = content_id({"config": run_config(config, arm), "code": code, "inputs": inputs})
    whole = config.model_dump(mode="json", by_alias=True)
    return {"fingerprint": key, "config": whole, "code": code, "inputs": inputs}


def run_config(config: Config, arm: str) -> dict[str, Any]:
    """The part of the configuration that decides what the arm's run is; how many workers share it does not."""
    relevant = config.model_dump(mode="json", by_alias=True, exclude={"arms", "scale", "bootstrap", "tasks"})
    relevant["train"].pop("workers")
    return {**relevant, "arms": {arm: config.arms[arm].model_dump()}}


def code_hashes(root: Path) -> dict[str, str]:
    """sha256 of every source file that a run executes, by its path from the project's root."""
    modules = {
        f"{_PACKAGE.name}/{path.relative_to(_PACKAGE).as_posix()}": path
        for name in CODE
        for path in _sources(_PACKAGE / name)
    }
    environments = {path.relative_to(root).as_posix(): path for path in _sources(root / "envs")}
    return {name: sha256(path) for name, path in sorted({**modules, **environments}.items())}


def input_hashes(config: Config, root: Path, arm: str) -> dict[str, str]:
    """sha256 of every file that the arm's run reads, by its path from the project's root."""
    return file_hashes(root, _inputs(config, root, arm))


def file_hashes(root: Path, files: Iterable[Path]) -> dict[str, str]:
    """sha256 of files, by their path from `root`."""
    return {path.relative_to(root).as_posix(): sha256(path) for path in sorted(files)}


def tree_hash(folder: Path) -> str:
    """One hash over the names and contents of everything in a folder."""
    return content_id(file_hashes(folder, (p for p in folder.rglob("*") if p.is_file())))


def sha256(path: Path) -> str:
    """sha256 of a file, as 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _inputs(config: Config, root: Path, arm: str) -> list[Path]:
    found = [path for name in FOLDERS for path in (root / name).rglob("*") if path.is_file()]
    source = config.arms[arm].reward_from
    if source is not None:
        found += (root / "runs" / source).rglob("*.safetensors")
    return found + list((root / config.model.prompts).glob("*.txt"))


def _sources(place: Path) -> list[Path]:
    return [place] if place.is_file() else sorted(place.rglob("*.py"))
