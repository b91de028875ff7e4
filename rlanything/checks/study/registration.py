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
    """What was registered: the declaration and the configuration, their hash, when, and at which git commit.

    clean: whether everything was committed; None without git.
    """

    at: str
    commit: str | None
    clean: bool | None
    hash: str
    declared: dict[str, Any]
    configuration: dict[str, Any]


def register(study: Study, space: Workspace, folder: Path) -> Registration:
    """Write the registration of a study into `folder`. An equal one that is there is kept.

    Raises `ConfigError` when the study has begun under another one.
    """
    content = _content(study, space)
    _require_not_begun(space, content)
    place = folder / FILE
    if place.is_file() and (found := _read(place)).hash == content_id(content):
        return found
    git = revision(space.project)
    made = Registration(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=None if git is None else git["commit"],
        clean=None if git is None else git["clean"],
        hash=content_id(content),
        **content,
    )
    write_json(place, made.model_dump(mode="json"))
    return made


def registered(study: Study, space: Workspace, folder: Path, command: str) -> Registration:
    """The registration of this study, which the workspace keeps from now on.

    Raises `ConfigError` where there is none, where it is of another study, or where the study began under another one.
    command: what registers it.
    """
    content = _content(study, space)
    _require_not_begun(space, content)
    kept, place = space.root / FILE, folder / FILE
    if kept.is_file() and not place.is_file():  # killed while the results were published
        return _read(kept)
    if not place.is_file():
        raise ConfigError(f"{place}: no such file; register the study before it runs: `{command}`")
    found = _read(place)
    if found.hash != content_id(content):
        raise ConfigError(
            f"{place}: the study was changed after it was registered ({_changes(found, content)}); register it again: "
            f"`{command}`"
        )
    if not kept.is_file():
        write_json(kept, found.model_dump(mode="json"))
    if (began := _read(kept)) != found:
        raise ConfigError(
            f"{place}: written {found.at}, after the study had begun under the registration of {began.at}; take that "
            f"one from git, or from {kept}"
        )
    return found


def _require_not_begun(space: Workspace, content: Mapping[str, Any]) -> None:
    """Raise `ConfigError` when what this study would train is trained already, under other hypotheses or tests."""
    kept = space.root / FILE
    if kept.is_file() and (began := _read(kept)).hash != content_id(content):
        raise ConfigError(
            f"{kept}: the study has begun, registered {began.at}; changed since: {_changes(began, content)}. Its "
            "results may have been seen. Take the declaration back, or declare another study with a `seed` of its own"
        )


def _read(path: Path) -> Registration:
    """A registration whose hash is that of its content. Raises `ConfigError`."""
    found = read_object(path, "take it from git")
    if wrong := problem(found, Registration):
        raise ConfigError(f"{path}: {wrong}; take it from git")
    made = Registration.model_validate(found)
    if content_id({"declared": made.declared, "configuration": made.configuration}) != made.hash:
        raise ConfigError(f"{path}: its hash is not that of its content; take it from git")
    return made


def _content(study: Study, space: Workspace) -> dict[str, Any]:
    """What is registered. The number of workers changes no result."""
    configuration = space.config.model_dump(mode="json", by_alias=True)
    configuration["train"].pop("workers")
    return {"declared": study.model_dump(mode="json"), "configuration": configuration}


def _changes(old: Registration, new: Mapping[str, Any]) -> str:
    """The keys that differ, a few of them."""
    before = {**flat(old.declared), **flat(old.configuration)}
    after = {**flat(new["declared"]), **flat(new["configuration"])}
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    return ", ".join(keys[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
