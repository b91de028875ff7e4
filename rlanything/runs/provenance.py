"""The origin of a run, in two files, and where an evaluation was made.

provenance/<arm>.json          configuration, code, inputs, seeds, panels, and the hash of each seed's folder.
                               The same run gives the same bytes, on any machine. Git keeps it.
provenance/starts/<arm>.json   every start of the command (a killed and resumed run has several): time, git commit,
                               machine, packages and programs of the environment. Git ignores it, so it exists only
                               where the run was made.
provenance/starts/evaluation/<arm>.json
                               the same of the command that measured the arm. It is apart from evaluation/<arm>.json, so
                               that equal evaluations are equal files.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from rlanything.config import Config, parse
from rlanything.core.errors import ConfigError, unknown_run
from rlanything.core.ids import content_id
from rlanything.core.printable import safe
from rlanything.core.records.provenance import Record, Starts, problem
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Json
from rlanything.files.atomic import clear_leftovers
from rlanything.files.hashes import sha256, tree_hash
from rlanything.files.reader import read_json, read_object
from rlanything.files.records import write_json
from rlanything.runs.fingerprint import Origin, made_from, run_config
from rlanything.runs.layout import Layout
from rlanything.runs.machine import SETTINGS, imported_from, machine, packages, revision

SCHEMA = 2
STARTS = "starts.json"
"""The file in an arm's live folder that lists the starts, until the run is placed in runs/."""
ELSEWHERE = ("git", "machine", "packages")
"""Parts of `differences` that can only be compared where the starts are recorded."""

_AGAIN = "take it from git, or train again"
_ONLY_STARTS = "remove it: it only notes how the run was started, and no result depends on it"


def record_start(
    live: Path,
    root: Path,
    published: Mapping[int, int],
    programs: Mapping[str, str] | None = None,
    code: Iterable[str] = (),
) -> None:
    """Add a start to the list in `live`. published: seed -> number of iterations that are published already.

    programs: name -> version of what the environment runs beside Python packages. code: files that the run imports.
    """
    write_json(live / STARTS, [*_starts(live), start(root, published, programs or {}, code)])


def start(
    root: Path, published: Mapping[int, int], programs: Mapping[str, str], code: Iterable[str]
) -> dict[str, Json]:
    """What is recorded of a start that happens now. Arguments: see `record_start`."""
    imported = imported_from(root)
    return {
        "at": _now(),
        "command": shlex.join(["rlanything", *sys.argv[1:]]),
        "git": revision(root, () if imported else code),  # files of another folder are none of this project's
        "imported": imported,
        "machine": machine(),
        "packages": packages(),
        "programs": dict(programs),
        "published": {str(seed): count for seed, count in published.items()},
    }


def write_measured(
    root: Path, arm: str, begun: Mapping[str, Json], used: Mapping[str, str] | None = None
) -> None:
    """Record where the evaluation of an arm was made, which is there already.

    begun: what `start` gave. used: name -> hash of what it was measured with, where that is another folder's.
    """
    layout = Layout(root)
    found = {"of": sha256(layout.evaluation(arm)), "starts": [begun], "finished": _now()}
    clear_leftovers(layout.measured(arm))
    write_json(layout.measured(arm), {**found, **({"used": dict(used)} if used else {})})


def measured(root: Path, arm: str) -> dict[str, Any]:
    """`starts` and `finished` of the evaluation of an arm; [] and None where there is none, or it is not known."""
    found = _measured(root, arm)
    return {"starts": found["starts"], "finished": found["finished"]}


def measured_with(root: Path, arm: str) -> dict[str, str]:
    """What `write_measured` recorded as used by the evaluation of an arm; {} where that is not known."""
    used: dict[str, str] = _measured(root, arm).get("used", {})
    return used


def _measured(root: Path, arm: str) -> dict[str, Any]:
    file = Layout(root).evaluation(arm)
    return _of(Layout(root).measured(arm), sha256(file) if file.is_file() else None)


def write(
    config: Config, root: Path, arm: str, origin: Origin, live: Path, divisions: Sequence[Json] = ()
) -> None:
    """Write both files of a finished run. Its starts are read from `live`.

    The whole `config` is stored, so that it can be parsed as a configuration again.

    divisions: those that the run had one after the other (`runs.resuming.divisions`); none where it had one alone. They
    are part of its fingerprint, because its bytes are not those of a run that `config` alone gives.
    """
    layout = Layout(root)
    record = {
        "schema": SCHEMA,
        "arm": arm,
        "fingerprint": fingerprint(origin, divisions),
        **({"divisions": list(divisions)} if divisions else {}),
        "config": config.model_dump(mode="json", by_alias=True),
        "code": origin.code,
        "inputs": origin.inputs,
        "seeds": {str(s): _seed(config, layout.run(arm, s), s) for s in range(config.train.seeds)},
        "panels": read_object(layout.manifest, "make it again with `rlanything tasks`")
        if layout.manifest.is_file()
        else None,
    }
    write_json(layout.provenance(arm), record)
    starts = {"of": content_id(record), "starts": _starts(live), "finished": _now()}
    write_json(layout.starts(arm), starts)


def fingerprint(origin: Origin, divisions: Sequence[Json]) -> str:
    """The hash of everything that decides the bytes of a run."""
    if not divisions:
        return origin.fingerprint
    return content_id({"origin": origin.fingerprint, "divisions": list(divisions)})


def of_this_form(root: Path, arm: str) -> bool:
    """Whether there is a record of the arm in the form that `read` reads. Raises `ConfigError` for no JSON object."""
    path = Layout(root).provenance(arm)
    return path.is_file() and read_object(path, _AGAIN).get("schema") == SCHEMA


def read(root: Path, arm: str) -> dict[str, Any]:
    """The record of an arm, with `starts` and `finished`. They are [] and None where they are not known.

    Raises `ConfigError` when there is no record, or when it has another form or is of another arm.
    """
    path = Layout(root).provenance(arm)
    if not path.is_file():
        known = sorted(p.stem for p in path.parent.glob("*.json"))
        raise ConfigError(f"{path}: no record of arm {arm!r}; {unknown_run(arm, known)}")
    found = read_object(path, _AGAIN)
    if found.get("schema") != SCHEMA:
        raise ConfigError(f"{path}: schema {found.get('schema')!r}; this version reads {SCHEMA} alone")
    _check(path, found, Record)
    _check_values(path, found)
    if found["arm"] != arm:
        raise ConfigError(f"{path}: it is the record of arm {found['arm'][:40]!r}")
    return {**found, **_started(Layout(root).starts(arm), content_id(found))}


def _started(path: Path, of: str | None) -> dict[str, Any]:
    """The starts of what has the hash `of`."""
    found = _of(path, of)
    return {"starts": found["starts"], "finished": found["finished"]}


def _of(path: Path, of: str | None) -> dict[str, Any]:
    """A file of starts. One of something else than what has the hash `of`, e.g. after a `git pull`, is ignored."""
    found = read_object(path, _ONLY_STARTS) if path.is_file() else {}
    if of is None or found.get("of") != of:
        return {"starts": [], "finished": None}
    _check(path, found, Starts)
    return found


def _check(path: Path, found: Mapping[str, Any], form: type[BaseModel]) -> None:
    if wrong := problem(found, form):
        raise ConfigError(f"{path}: {wrong}")


def _check_values(path: Path, found: Mapping[str, Any]) -> None:
    """Raise `ConfigError` for numbers that are not finite."""
    try:
        content_id(found)
    except ValueError as error:
        odd = (f"{k} = {x}" for k, x in flat(found).items() if isinstance(x, float) and not isfinite(x))
        wrong = safe(next(odd, str(error)))
        raise ConfigError(f"{path}: no record holds such a value ({wrong})") from None


def differences(record: Mapping[str, Any], config: Config, root: Path) -> dict[str, list[str]]:
    """What differs now from the record: part -> sentences; [] where a part is the same or not recorded."""
    arm, recorded = str(record["arm"]), parse(record["config"])
    now = made_from(config, root, arm)
    found = {
        "configuration": changed(flat(run_config(recorded, arm)), flat(run_config(config, arm))),
        "code": changed(record["code"], now.code),
        "inputs": changed(record["inputs"], now.inputs),
        "results": _results(record, root, record["seeds"]),
    }
    if not record["starts"]:
        return found | {part: [] for part in ELSEWHERE}
    last = record["starts"][-1]
    return found | {
        "git": changed(_commit(last["git"]), _commit(revision(root))),
        "machine": changed(flat(_chosen(last["machine"])), flat(_chosen(machine()))),
        "packages": changed(last["packages"], packages()),
    }


def of_other_runs(record: Mapping[str, Any], root: Path) -> bool:
    """Whether a run that is here is not that of the record. Every file of the runs is read."""
    here = [seed for seed in record["seeds"] if Layout(root).run(str(record["arm"]), int(seed)).is_dir()]
    return bool(_results(record, root, here))


def _results(record: Mapping[str, Any], root: Path, seeds: Iterable[str]) -> list[str]:
    """A sentence for each of the seeds whose run is not that of the record."""
    arm, kept = str(record["arm"]), {seed: record["seeds"][seed]["sha256"] for seed in seeds}
    return changed(kept, {seed: _hash(Layout(root).run(arm, int(seed))) for seed in kept})


def _chosen(found: Mapping[str, Any]) -> dict[str, Any]:
    """A machine with only those settings that can change results. Older records have more."""
    return {**found, "settings": {k: v for k, v in found["settings"].items() if k in SETTINGS}}


def changed(before: Mapping[str, Json], after: Mapping[str, Json]) -> list[str]:
    """A sentence for each key whose value differs. Hashes are shortened."""
    found = []
    for key in sorted({*before, *after}):
        if key not in after:
            found.append(f"{key}: gone (was {_short(before[key])})")
        elif key not in before:
            found.append(f"{key}: new ({_short(after[key])})")
        elif before[key] != after[key]:
            found.append(f"{key}: {_short(before[key])} -> {_short(after[key])}")
    return found


def _seed(config: Config, folder: Path, seed: int) -> dict[str, Json]:
    return {"run_seed": derive_seed(config.seed, "run", seed), "sha256": _hash(folder)}


def _hash(folder: Path) -> str | None:
    return tree_hash(folder) if folder.is_dir() else None


def _commit(git: Mapping[str, Any] | None) -> dict[str, Json]:
    if git is None:
        return {"commit": None}
    return {"commit": git["commit"], "uncommitted changes": git["diff_sha256"] or "none"}


def flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Json]:
    """The mapping with nested keys joined by dots."""
    found: dict[str, Json] = {}
    for key, item in value.items():
        found |= flat(item, f"{prefix}{key}.") if isinstance(item, Mapping) else {f"{prefix}{key}": item}
    return found


def _short(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text[:12] if len(text) in (40, 64) and " " not in text else text


def _starts(live: Path) -> list[Json]:
    path = live / STARTS
    found: Any = read_json(path, _ONLY_STARTS) if path.is_file() else []
    return found


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
