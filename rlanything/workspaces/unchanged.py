"""What a stage is made from must not change while it runs.

DVC reads parameters and dependencies when a command has ended. Without this check a result of older code would be
recorded as one of today's, and nothing would make it again. DVC records nothing of a command that fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlanything.core.errors import ConfigError
from rlanything.files.hashes import digest, files_in
from rlanything.files.yaml_file import read_mapping
from rlanything.planning.pipeline import look_up
from rlanything.runs.imports import code_files, targets
from rlanything.runs.provenance import changed, flat

if TYPE_CHECKING:
    from rlanything.config import Config
    from rlanything.stages.stage import Stage

SHOWN = 4
"""The most differences that a message names."""


@contextmanager
def unchanged(stage: Stage, config: Config, root: Path, arm: str, params: Path) -> Iterator[None]:
    """Run the stage in the block. params: the file that `config` was read from.

    Raises `ConfigError`, naming what changed, where code, prompts or parameters of the stage differ after it.
    """
    files = _files(stage, config, root)
    before = _hashes(files) | _values(stage, config, arm, params)
    yield
    found = changed(before, _hashes(files) | _values(stage, config, arm, params))
    if found:
        more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise ConfigError(
            f"changed while {stage.name} ran: {'; '.join(found[:SHOWN])}{more}. What it made may be of the one or the "
            "other, so it is not recorded as a result. The same command makes it again"
        )


def _files(stage: Stage, config: Config, root: Path) -> dict[str, Path]:
    """The files of the stage's code, with the classes that it makes objects of, and the prompts."""
    data = config.model_dump(mode="json", by_alias=True)
    classes = targets([look_up(data, name) for name in stage.makes])
    prompts = {path.as_posix(): path for path in files_in(root / config.model.prompts)}
    return code_files([stage.module, *classes]) | prompts


def _hashes(files: dict[str, Path]) -> dict[str, str]:
    return {name: digest(path) for name, path in files.items() if path.is_file()}


def _values(stage: Stage, config: Config, arm: str, params: Path) -> dict[str, Any]:
    """The stage's parameters as they are on disk, by their dotted names."""
    data, columns = read_mapping(params), stage.arms(config)[arm] if stage.arms else {}
    names = (
        re.sub(r"\$\{item\.(\w+)\}", lambda found: columns[found[1]], name).replace("${key}", arm)
        for name in stage.params_for(config)
    )
    return flat({name: look_up(data, name) for name in names})
