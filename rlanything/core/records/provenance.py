"""The fields of provenance records that the program reads again (whole format: docs/results.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from rlanything.core.records.forms import first_error


class Seed(BaseModel):
    """A seed of the run: its derived seed, and the hash of its folder (None: the folder was missing)."""

    run_seed: int
    sha256: str | None


class Panel(BaseModel):
    """A panel: how many tasks it has, and their hash."""

    tasks: int
    hash: str


class Division(BaseModel):
    """How a run was divided. first: seed -> the first iteration. values: of the keys that were changed later."""

    first: dict[int, int]
    values: dict[str, Any]


class Record(BaseModel):
    """What a run was made from, and the hashes of its results.

    divisions: those that it had one after the other; most runs have one alone, and none here.
    """

    arm: str
    fingerprint: str
    config: dict[str, Any]
    code: dict[str, str]
    inputs: dict[str, str]
    seeds: dict[int, Seed]
    panels: dict[str, Panel] | None
    divisions: list[Division] = []


class Git(BaseModel):
    """The git commit that a run was started from, and the uncommitted changes. clean: None where git could not tell."""

    commit: str
    clean: bool | None
    diff: str
    diff_sha256: str | None
    untracked: list[str]


class Machine(BaseModel):
    """Where a run was started."""

    accelerators: list[str]
    cores: int
    cpu: str
    memory_gib: float
    python: str
    settings: dict[str, str]
    system: str


class Start(BaseModel):
    """One start of a run. published: seed -> number of iterations that earlier starts had published.

    programs: what the environment says of its programs -> version; older records have none.
    imported: the folder that the program came from, where that is not the project's; older records do not say.
    """

    at: str
    command: str
    git: Git | None
    machine: Machine
    packages: dict[str, str]
    published: dict[str, int]
    programs: dict[str, str] = {}
    imported: str | None = None


class Starts(BaseModel):
    """Every start of a run, and when it was finished.

    used: of an evaluation, the hashes of the tasks and base models of another folder that it was made with.
    """

    starts: list[Start]
    finished: str | None
    used: dict[str, str] = {}


def problem(found: Mapping[str, Any], form: type[BaseModel]) -> str:
    """The first field of a record that does not fit `form`, with the reason; '' when all fit."""
    try:
        form.model_validate(dict(found))
    except ValidationError as error:
        return first_error(error)
    return ""
