"""The origin of an arm's runs, and what differs from it in this project now."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlanything.config import Config, parse
from rlanything.core.ids import content_id
from rlanything.core.seeds import derive_seed
from rlanything.files.hashes import sha256
from rlanything.files.reader import read_object
from rlanything.repro.run_rules import configuration
from rlanything.runs import provenance
from rlanything.runs.fingerprint import Origin, run_config
from rlanything.runs.layout import Layout
from rlanything.runs.machine import diff_since

PARTS = {
    "record": "the record itself",
    "results": "the run's own files",
    "configuration": "configuration",
    "code": "source files",
    "inputs": "inputs (tasks, models, prompts)",
    "git": "git revision",
    "machine": "machine",
    "packages": "packages",
}
"""The parts of a record that are compared -> what they are called."""


def recorded(root: Path) -> list[str]:
    """The arms with a record."""
    return sorted(path.stem for path in (root / "provenance").glob("*.json"))


def page(arm: str, config: Config, root: Path) -> dict[str, Any]:
    """The record of an arm, with the current differences of each part under `today`. Raises `ConfigError`."""
    record = provenance.read(root, arm)
    configuration(record, root)  # names the file where it cannot be read
    today = provenance.differences(record, config, root)
    today["record"] = contradictions(record, root, same_code=not today["code"])
    if today["git"] and _same_files(record["starts"][-1]["git"], root):
        today["git"] = []
    return assembled(record, today, root)


def assembled(record: Mapping[str, Any], today: Mapping[str, Sequence[str]], root: Path) -> dict[str, Any]:
    """The page of a record, with where its arm was measured. today: differences by part; one left out has none."""
    differing = {part: today.get(part, []) for part in PARTS}
    return {**record, "measured": provenance.measured(root, str(record["arm"])), "today": differing}


def contradictions(record: Mapping[str, Any], root: Path, *, same_code: bool) -> list[str]:
    """What in a record does not follow from the rest of it: seeds, fingerprint, panels.

    same_code: whether the code is that of the run. Other code may read the configuration in another way, and so give
    another fingerprint; it is not compared then.
    """
    config, arm = parse(record["config"]), str(record["arm"])
    expected: dict[str, Any] = {
        "seeds": sorted(str(seed) for seed in range(config.train.seeds)),
        **{f"derived seed of {s}": derive_seed(config.seed, "run", int(s)) for s in record["seeds"]},
    }
    found = {
        "seeds": sorted(record["seeds"]),
        **{f"derived seed of {s}": kept["run_seed"] for s, kept in record["seeds"].items()},
    }
    if same_code:
        origin = Origin(run_config(config, arm), record["code"], record["inputs"], {})
        expected["fingerprint"] = provenance.fingerprint(origin, record.get("divisions", ()))
        found["fingerprint"] = record["fingerprint"]
    path = Layout(root).manifest
    if path.is_file() and record["inputs"].get(path.relative_to(root).as_posix()) == sha256(path):
        expected["panels"], found["panels"] = read_object(path), record["panels"]
    return [
        f"{key}: {_written(found[key])}, and by the rest of the record {_written(value)}"
        for key, value in expected.items()
        if found[key] != value
    ]


def _written(value: Any) -> str:
    """A value of a record for a sentence: a hash shortened."""
    return value[:12] if isinstance(value, str) else json.dumps(value)


def _same_files(git: Mapping[str, Any] | None, root: Path) -> bool:
    """Whether git's files are what they were at the start of a run, though the commit is another one.

    It is another one after the results were committed, or the changes that the run was started with. Files that git did
    not know then are not compared: of those, the record has no content but that of code and inputs.
    """
    if git is None or git["clean"] is None:
        return False
    diff = diff_since(git["commit"], root, git["untracked"])
    return diff is not None and (content_id(diff) if diff else None) == git["diff_sha256"]


def same(found: Mapping[str, Any]) -> bool:
    """Whether nothing differs."""
    return not any(found["today"].values())
