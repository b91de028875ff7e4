"""What a run was made from: the one place that knows its fingerprint, in training and afterwards."""

from __future__ import annotations

from rlanything.core.errors import ConfigError
from rlanything.core.types import Json
from rlanything.files.reader import read_object
from rlanything.rollouts.runs import NamedRun
from rlanything.runs import provenance
from rlanything.runs.fingerprint import Origin
from rlanything.runs.resuming import divisions, origins

PARTS = ("config", "code", "inputs", "packages")


def origin_of(run: NamedRun) -> Origin:
    """What a run in training was made from, as its live folder says. Raises `ConfigError` naming a part of it."""
    path = run.stored.folder.parent / origins.FILE
    found = read_object(path, "start the training again")
    for part in PARTS:
        if not isinstance(found.get(part), dict):
            raise ConfigError(f"{path}: {part} is no mapping; start the training again")
    return Origin(*(found[part] for part in PARTS))


def divisions_of(run: NamedRun) -> list[dict[str, Json]]:
    """The divisions that a run in training has had so far, as its record will have them; [] for one alone."""
    return divisions.record(run.stored.folder.parent, origin_of(run).key)


def fingerprint_of(run: NamedRun) -> str:
    """The hash of what decides a run's bytes: the same from its last division on, afterwards, and on every machine.

    Raises `ConfigError` for a record that cannot be read."""
    if not run.finished:
        return provenance.fingerprint(origin_of(run), divisions_of(run))
    found: str = provenance.read(run.root, run.arm)["fingerprint"]
    return found
