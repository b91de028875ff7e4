"""What a stage is made from must not change while it runs.

DVC reads parameters and dependencies when a command has ended. Without this check a result of older code would be
recorded as one of today's, and nothing would make it again. DVC records nothing of a command that fails. What a stage
depends on is read from its declaration: a trial has no dvc.yaml, and to start DVC would take longer than some stages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlanything.core.errors import ConfigError
from rlanything.files.hashes import digest, files_in
from rlanything.files.yaml_file import read_mapping
from rlanything.planning.pipeline import code_of, look_up, outside_of
from rlanything.planning.uncommitted import few
from rlanything.runs.provenance import changed, flat

if TYPE_CHECKING:
    from rlanything.config import Config
    from rlanything.stages.stage import Stage

_TEMPLATE = re.compile(r"\$\{([\w.]+)\}")


@contextmanager
def unchanged(stage: Stage, config: Config, root: Path, arm: str, params: Path) -> Iterator[None]:
    """Run the stage in the block. params: the file that `config` was read from.

    Raises `ConfigError`, naming what changed, where code, prompts or parameters of the stage differ after it.
    """
    data = config.model_dump(mode="json", by_alias=True)
    files = code_of(stage, data) | outside_of(stage, data) | _prompts(stage, config, root, arm)
    before = _hashes(files) | _values(stage, config, arm, params)
    yield
    found = changed(before, _hashes(files) | _values(stage, config, arm, params))
    if found:
        raise ConfigError(
            f"changed while {stage.name} ran: {few(found)}. What it made may be of the one or the "
            "other, so it is not recorded as a result. The same command makes it again"
        )


def _prompts(stage: Stage, config: Config, root: Path, arm: str) -> dict[str, Path]:
    """The files of prompts that the stage depends on."""
    deps = _filled(stage, config, arm, stage.deps(config))
    folders = {config.model.prompts, *(one.prompts for one in config.evaluate.samplers if one.prompts)}
    named = [root / dep for dep in deps if any(dep == of or dep.startswith(f"{of}/") for of in folders)]
    files = [path for place in named for path in ([place] if place.is_file() else files_in(place))]
    return {path.relative_to(root).as_posix(): path for path in files}


def _hashes(files: dict[str, Path]) -> dict[str, str]:
    return {name: digest(path) for name, path in files.items() if path.is_file()}


def _values(stage: Stage, config: Config, arm: str, params: Path) -> dict[str, Any]:
    """The stage's parameters as they are on disk, by their dotted names."""
    data = read_mapping(params)
    return flat({name: look_up(data, name) for name in _filled(stage, config, arm, stage.params_for(config))})


def _filled(stage: Stage, config: Config, arm: str, names: Sequence[str]) -> list[str]:
    """Names of dependencies or parameters with DVC's templates filled."""
    columns = stage.arms(config)[arm] if stage.arms else {}
    words = {
        "key": arm,
        "model.prompts": config.model.prompts,
        **{f"item.{k}": v for k, v in columns.items()},
    }
    return [_TEMPLATE.sub(lambda found: words[found[1]], name) for name in names]
