"""What dvc.yaml says about a stage: the parameters and files that its results depend on."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from rlanything.config import ConfigError

_NAME = re.compile(r"\$\{([^}]+)\}")


class Pipeline:
    """The stages of a project's dvc.yaml, with its templates filled from a configuration."""

    def __init__(self, root: Path) -> None:
        """Raises `ConfigError` where there is no dvc.yaml."""
        path = root / "dvc.yaml"
        if not path.is_file():
            raise ConfigError(f"{path}: no such file; run this where the project lies, or use --root")
        self.root = root
        self.stages: Mapping[str, Any] = yaml.safe_load(path.read_text())["stages"]

    def params(self, stage: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """Key -> value in `data` of every parameter that `stage` (`train@full`) depends on."""
        body, item = self._stage(stage)
        return {name: look_up(data, name) for p in body["params"] for name in [_fill(p, item, data)]}

    def files(self, stage: str, data: Mapping[str, Any]) -> list[Path]:
        """The files that `stage` depends on and that no stage makes, in a fixed order."""
        body, item = self._stage(stage)
        places = [self.root / _fill(dep, item, data) for dep in body["deps"]]
        made = tuple(self.root / name for name in ("data", "models", "runs", "evaluation"))
        kept = [p for p in places if not any(p.is_relative_to(folder) for folder in made)]
        return sorted({file for place in kept for file in _files(place)})

    def digest(self, stages: list[str], data: Mapping[str, Any]) -> list[str]:
        """A hash of every file that one of `stages` depends on."""
        files = sorted({file for stage in stages for file in self.files(stage, data)})
        return digests(files)

    def _stage(self, name: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """A stage and what fills its template; an arm of one's own depends on what `full` does."""
        base, _, key = name.partition("@")
        stage = self.stages[base]
        if "foreach" not in stage:
            return stage, {}
        items = stage["foreach"]
        return stage["do"], {"key": key, "item": items.get(key, items["full"])}


def digests(files: list[Path]) -> list[str]:
    """The sha256 of every file."""
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]


def look_up(data: Mapping[str, Any], name: str) -> Any:
    """The value at a dotted name, or None."""
    found: Any = data
    for part in name.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(part)
    return found


def _fill(text: str, item: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    def value(match: re.Match[str]) -> str:
        found = look_up(item, match[1])
        return str(look_up(data, match[1]) if found is None else found)

    return _NAME.sub(value, text)


def _files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    return [p for p in place.rglob("*") if p.is_file() and p.suffix not in (".pyc", ".md")]
