"""The registration of a study: a hash of what it declares, written before anything is trained.

It stands in checks/<name>/registration.json, which belongs into git before the study runs: then the history shows that
hypotheses, arms, seeds and tests were there first. A study that differs from its registration is not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from rlanything.checks.study.declare import Study
from rlanything.checks.workspace import Workspace
from rlanything.core.errors import ConfigError
from rlanything.core.ids import content_id
from rlanything.core.records.provenance import problem
from rlanything.files.reader import read_object
from rlanything.files.records import write_json
from rlanything.runs.machine import revision
from rlanything.runs.provenance import flat

FILE = "registration.json"


class Registration(BaseModel):
    """What was registered: the declaration and the configuration, their hash, when, and at which git commit."""

    at: str
    commit: str | None
    hash: str
    declared: dict[str, Any]
    configuration: dict[str, Any]


def register(study: Study, space: Workspace, folder: Path) -> Registration:
    """Write the registration of a study into `folder`, over an earlier one."""
    content = _content(study, space)
    git = revision(space.project)
    made = Registration(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=None if git is None else git["commit"],
        hash=content_id(content),
        **content,
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / FILE, made.model_dump(mode="json"))
    return made


def registered(study: Study, space: Workspace, folder: Path, command: str) -> Registration:
    """The registration of this study. Raises `ConfigError` where there is none, or where it is of another study.

    command: what registers it.
    """
    path = folder / FILE
    if not path.is_file():
        raise ConfigError(f"{path}: no such file; register the study before it runs: `{command}`")
    found = read_object(path, f"register the study again: `{command}`")
    if wrong := problem(found, Registration):
        raise ConfigError(f"{path}: {wrong}; register the study again: `{command}`")
    content = _content(study, space)
    if content_id({key: found[key] for key in content}) != found["hash"]:
        raise ConfigError(f"{path}: its hash is not that of its content; take it from git")
    if found["hash"] != content_id(content):
        raise ConfigError(
            f"{path}: the study was changed after it was registered ({_changes(found, content)}); register it again: "
            f"`{command}`"
        )
    _require_first(found, space.root / FILE, path)
    return Registration.model_validate(found)


def _require_first(found: Mapping[str, Any], first: Path, path: Path) -> None:
    """Raise `ConfigError` unless the study began under this registration. first: the workspace's copy of it."""
    if not first.is_file():
        first.parent.mkdir(parents=True, exist_ok=True)
        write_json(first, dict(found))
    began = read_object(first)
    if began != found:
        raise ConfigError(
            f"{path}: written {found['at']}, after the study had begun under the registration of {began.get('at')}; "
            f"take that one from git, or from {first}"
        )


def _content(study: Study, space: Workspace) -> dict[str, Any]:
    """What is registered. The number of workers changes no result."""
    configuration = space.config.model_dump(mode="json", by_alias=True)
    configuration["train"].pop("workers")
    return {"declared": study.model_dump(mode="json"), "configuration": configuration}


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The keys that differ, a few of them."""
    before, after = (
        {**flat(content["declared"]), **flat(content["configuration"])} for content in (old, new)
    )
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    return ", ".join(keys[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
