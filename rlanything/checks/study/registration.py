"""The registration of a study: a hash of what it declares, without which it is not run.

It stands in checks/<name>/registration.json, which belongs into git before the study runs: then the history shows that
hypotheses, arms, seeds and tests were there first. A study that differs from its registration is not run. A name whose
study was published, or whose registration was committed, is never registered for something else.

Newer code can have keys that a registration has not (`upgraded`). A study that has begun goes on under the registration
under which it began, and one that has not is registered again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from rlanything.checks.study import earlier
from rlanything.checks.study.declare import Study
from rlanything.checks.study.pins import pins
from rlanything.checks.study.upgraded import changed, declared_otherwise, differing
from rlanything.checks.workspace import Workspace
from rlanything.config import Config, parse
from rlanything.core.errors import ConfigError
from rlanything.core.ids import content_id
from rlanything.core.records.provenance import problem
from rlanything.files.reader import read_object
from rlanything.files.records import write_json
from rlanything.planning import compose
from rlanything.runs.machine import revision

FILE = "registration.json"


class First(BaseModel):
    """The first registration of a study that was registered again: when, at which git commit, and its hash."""

    at: str
    commit: str | None
    hash: str


class Stamp(BaseModel):
    """When a study was registered, at which git commit, and the hash of what was registered.

    clean: whether everything was committed; None without git. first: of a study that other code made register again.
    """

    at: str
    commit: str | None
    clean: bool | None
    hash: str
    first: First | None = None


class Registration(Stamp):
    """The same with what was registered: the declaration and the configuration."""

    declared: dict[str, Any]
    configuration: dict[str, Any]


def register(study: Study, space: Workspace, folder: Path) -> Registration:
    """Write the registration of a study into `folder`. An equal one that is there is kept.

    One that differs from an earlier one only in keys that the code has gained or lost names the first one.

    Raises `ConfigError` when the study has begun under another one, or when another study of this name was published
    or its registration committed.
    """
    content = _content(study, space)
    began = _begun(space, content)
    before = _require_same(folder, content)
    place = folder / FILE
    if place.is_file():
        found = read_registration(place)
        if found == began or found.hash == content_id(content):
            require_as_in_git(found, place)
            return found
    git = revision(space.project)
    made = Registration(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=None if git is None else git["commit"],
        clean=None if git is None else git["clean"],
        hash=content_id(content),
        first=None if before is None else _first(before),
        **content,
    )
    write_json(place, made.model_dump(mode="json"))
    return made


def registered(study: Study, space: Workspace, folder: Path, command: str) -> Registration:
    """The registration of this study, which the workspace keeps from now on.

    Raises `ConfigError` where there is none, where it is of another study, where the study began under another one, or
    where another study of this name was published or its registration committed.
    command: what registers it.
    """
    content = _content(study, space)
    began = _begun(space, content)
    kept, place = space.root / FILE, folder / FILE
    _require_same(folder, content)
    if began is not None and not place.is_file():  # killed while the results were published
        return began
    if not place.is_file():
        raise ConfigError(f"{place}: no such file; register the study before it runs: `{command}`")
    found = read_registration(place)
    if found != began and found.hash != content_id(content):
        raise ConfigError(
            f"{place}: the study was changed after it was registered ({_changes(found, content)}); register it again: "
            f"`{command}`"
        )
    require_as_in_git(found, place)
    if began is None:
        write_json(kept, found.model_dump(mode="json"))
    elif found != began:
        raise ConfigError(
            f"{place}: written {found.at}, after the study had begun under the registration of {began.at}; take that "
            f"one from git, or from {kept}"
        )
    return found


def require_as_in_git(found: Registration, place: Path) -> None:
    """Raise `ConfigError` where git has registrations at `place`, and the one that was read there is none of them.

    One that newer code made, and that is not committed yet, names the first one.
    """
    known = list(earlier.versions(place))
    if not known or any(_is(text, found) for text in known):
        return
    newest = _checked(_parsed(known[0], place), f"{place} in git")
    if found.first != _first(newest):
        keys = differing(newest.model_dump(mode="json"), found.model_dump(mode="json"))
        raise ConfigError(
            f"{place}: it is no registration that git has; differs in {_few(keys)}; take it from git"
        )


def _is(text: str, found: Registration) -> bool:
    """Whether a text is this registration in all of its fields."""
    try:
        return Registration.model_validate_json(text) == found
    except ValidationError:  # of a version of the code that had other fields
        return False


def changed_since(registered: Registration, config: Config) -> str:
    """The keys of a configuration that differ from the registered ones, a few of them; '' where none does."""
    return _few(changed(registered.configuration, _configuration(config)))


def pinned(study: Study, root: Path, folder: Path) -> tuple[str, ...]:
    """Hydra overrides that make of what `experiments/` says today the configuration that was registered.

    Raises `ConfigError` where the study is not registered.
    """
    place = folder / FILE
    if not place.is_file():
        raise ConfigError(f"{place}: no such file; take it from git, or register the study first")
    now = parse(compose.compose(study.hydra_overrides(1), root))
    return pins(read_registration(place).configuration, _configuration(now))


def _begun(space: Workspace, content: Mapping[str, Any]) -> Registration | None:
    """The registration under which this study has begun; None where it has not.

    Raises `ConfigError` when what it would train is trained already, under other hypotheses or tests."""
    kept = space.root / FILE
    if not kept.is_file():
        return None
    began = read_registration(kept)
    if changes := _changed(began, content):
        raise ConfigError(
            f"{kept}: the study has begun, registered {began.at}; changed since: {_few(changes)}. Its results may have "
            "been seen. Take the declaration back, or declare another study with a `seed` of its own"
        )
    return began


def _require_same(folder: Path, content: Mapping[str, Any]) -> Registration | None:
    """The earlier registration of this name, published or committed. Raises `ConfigError` when it is of another study.

    Code that is newer has keys of the configuration that the older had not (`upgraded`).
    """
    place = folder / FILE
    published = earlier.is_published(folder)
    if published and not place.is_file():
        raise ConfigError(f"{place}: no such file, but the study was published; take it from git")
    if published:
        changes = declared_otherwise(earlier.published_declaration(folder), content["declared"])
        _require_none(changes, f"{folder}: this study was published")
    text = earlier.committed(place)
    in_git = None if text is None else _checked(_parsed(text, place), f"{place} in git")
    kept = read_registration(place) if published else None
    for before, how in ((in_git, "was committed"), (kept, "belongs to published results")):
        if before is not None:
            _require_none(_changed(before, content), f"{place}: the registration of {before.at} {how}")
    return in_git or kept


def _require_none(changes: Sequence[str], what: str) -> None:
    """Raise `ConfigError` where keys have changed. what: what was there before them."""
    if changes:
        raise ConfigError(
            f"{what}, and differs now: {_few(changes)}. Take the change back (`--registered` does so for what "
            "experiments/ says, not for the declaration), or give another study a file with another name, and a "
            "`seed` of its own"
        )


def _first(before: Registration) -> First:
    return before.first or First(at=before.at, commit=before.commit, hash=before.hash)


def _parsed(text: str, path: Path) -> dict[str, Any]:
    """The registration that git has. Raises `ConfigError`."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ConfigError(
            f"{path}: its newest text in git is no JSON object; commit the one that was registered"
        )
    return found


def read_registration(path: Path) -> Registration:
    """A registration whose hash is that of its content. Raises `ConfigError`."""
    return _checked(read_object(path, "take it from git"), str(path))


def _checked(found: dict[str, Any], path: str) -> Registration:
    """The same of what was read; path: for messages."""
    if wrong := problem(found, Registration):
        raise ConfigError(f"{path}: {wrong}; take it from git")
    made = Registration.model_validate(found)
    if content_id({"declared": made.declared, "configuration": made.configuration}) != made.hash:
        raise ConfigError(f"{path}: its hash is not that of its content; take it from git")
    return made


def _content(study: Study, space: Workspace) -> dict[str, Any]:
    """What is registered."""
    return {"declared": study.model_dump(mode="json"), "configuration": _configuration(space.config)}


def _configuration(config: Config) -> dict[str, Any]:
    """The configuration without the number of workers, which changes no result."""
    configuration = config.model_dump(mode="json", by_alias=True)
    configuration["train"].pop("workers")
    return configuration


def _changed(old: Registration, new: Mapping[str, Any]) -> list[str]:
    """The keys that say that the studies differ, those of the declaration first."""
    declared = declared_otherwise(old.declared, new["declared"])
    return declared + changed(old.configuration, new["configuration"])


def _changes(old: Registration, new: Mapping[str, Any]) -> str:
    """The keys that differ, a few of them. Those that the code has gained or lost are named where no other differs."""
    if own := _changed(old, new):
        return _few(own)
    code = differing(old.declared, new["declared"]) + differing(old.configuration, new["configuration"])
    return f"keys that the code has gained or lost: {_few(code)}"


def _few(keys: Sequence[str]) -> str:
    return ", ".join(keys[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
