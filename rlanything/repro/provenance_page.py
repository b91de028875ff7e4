"""`rlanything provenance`: the origin of a run, and what differs from it in this project now."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlanything.buffer.views.find.places import unfinished
from rlanything.config import CONTROLS, Checkpoint, Config, parse
from rlanything.core.errors import ConfigError, unknown_run
from rlanything.core.ids import content_id
from rlanything.core.seeds import derive_seed
from rlanything.engines import sources
from rlanything.files.hashes import file_hashes, files_in, sha256
from rlanything.files.reader import read_object
from rlanything.repro.run_rules import configuration
from rlanything.runs import provenance
from rlanything.runs.fingerprint import Origin, run_config
from rlanything.runs.layout import Layout
from rlanything.runs.machine import diff_since

MOST = 8
"""How many differences of one part are printed. `--json` prints all."""
_PARTS = {
    "record": "the record itself",
    "results": "the run's own files",
    "configuration": "configuration",
    "code": "source files",
    "inputs": "inputs (tasks, models, prompts)",
    "git": "git revision",
    "machine": "machine",
    "packages": "packages",
}


def of(name: str, config: Config, root: Path) -> dict[str, Any]:
    """The page of what `name` means: a run or its arm, or the base models (`config.CONTROLS`). Raises `ConfigError`."""
    return base_page(name, config, root) if name in CONTROLS else page(arm_of(name, root), config, root)


def arm_of(name: str, root: Path) -> str:
    """The arm that `name` means: `full`, `full/seed-0`, or a path to one of them below `root`. Raises `ConfigError`."""
    known = _recorded(root)
    runs = root.resolve() / "runs"
    for place in (Path(os.path.normpath(above / name)) for above in (runs, runs.parent)):
        within = place.relative_to(runs).parts if place.is_relative_to(runs) else ()
        if within and within[0] in known and (len(within) == 1 or within[1] in _seeds(root, within[0])):
            return within[0]
    parts = Path(name).parts
    hint = unfinished(name, root) or unknown_run(
        parts[-1] if parts else name, [*known, *CONTROLS] if known else []
    )
    raise ConfigError(f"no record of run {name!r}: {hint}")


def _recorded(root: Path) -> list[str]:
    """The arms with a record."""
    return sorted(path.stem for path in (root / "provenance").glob("*.json"))


def _seeds(root: Path, arm: str) -> list[str]:
    return [f"seed-{seed}" for seed in provenance.read(root, arm)["seeds"]]


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
    differing = {part: today.get(part, []) for part in _PARTS}
    return {**record, "measured": provenance.measured(root, str(record["arm"])), "today": differing}


def base_page(name: str, config: Config, root: Path) -> dict[str, Any]:
    """What the base models are made from. No run has trained them, so they have no record of their own.

    Under `models`, by role: the checkpoint, and its files (path -> sha256) or commit; {} where it is not here. Under
    `today`: of each recorded arm, which files of models/ and configured checkpoints it did not begin with.

    name: one of `config.CONTROLS`; its evaluation is under `measured`. Raises `ConfigError`.
    """
    served, layout = config.endpoints.served, Layout(root)
    roles = {
        role: getattr(config.model, role) for role in ("policy", "reward", "adapter") if role not in served
    }
    folder = layout.bootstrap.parent
    # What the stage measured of the models is no part of them.
    here = file_hashes(root, (path for path in files_in(folder) if path != layout.bootstrap))
    for checkpoint in roles.values():
        here |= sources.named(checkpoint, root)
    return {
        "arm": name,
        "embedded": config.model.embedded is not None,
        "models": {role: _made_of(checkpoint, root) for role, checkpoint in roles.items()}
        | {role: {"endpoint": served[role].root, "model": served[role].model} for role in served},
        "measured": provenance.measured(root, name),
        "today": {arm: _began_with_others(provenance.read(root, arm), here, root) for arm in _recorded(root)},
    }


def _made_of(checkpoint: Checkpoint, root: Path) -> dict[str, Any]:
    found = sources.contents(checkpoint, root)
    made = {"files": found} if sources.is_local(checkpoint, root) else found
    return {"path": checkpoint.path, "revision": checkpoint.revision, **made}


def _began_with_others(record: Mapping[str, Any], here: Mapping[str, str], root: Path) -> list[str]:
    """The base models of a recorded run against those that are here."""
    models = Layout(root).bootstrap.parent.relative_to(root).as_posix() + "/"
    measured = Layout(root).bootstrap.relative_to(root).as_posix()
    before = {
        path: digest
        for path, digest in record["inputs"].items()
        if path != measured and (path.startswith(models) or path in here)
    }
    return provenance.changed(
        before, {path: digest for path, digest in here.items() if path.startswith(models) or path in before}
    )


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


def text(found: Mapping[str, Any]) -> str:
    """The page for a terminal."""
    if found["arm"] in CONTROLS:
        return _base_text(found)
    finished = f", finished {found['finished']}" if found["finished"] else ""
    lines = [f"arm {found['arm']}, run {found['fingerprint'][:16]}{finished}", ""]
    lines += ["seeds"]
    lines += [
        f"  {seed}: derived seed {kept['run_seed']}, files {_hash(kept['sha256'])}"
        for seed, kept in found["seeds"].items()
    ]
    if found["panels"]:
        lines += ["panels"]
        lines += [
            f"  {split}: {panel['tasks']} tasks, {_hash(panel['hash'])}"
            for split, panel in found["panels"].items()
        ]
    lines += divided(found)
    lines += [f"made from {len(found['code'])} source files and {len(found['inputs'])} input files", ""]
    for number, start in enumerate(found["starts"], 1):
        lines += _start(f"start {number}", start)
    if not found["starts"]:
        lines.append(
            "starts: not on this machine. The time, git commit, machine and packages of the run are in "
            f"provenance/starts/{found['arm']}.json where it was made"
        )
    for start in found["measured"]["starts"]:
        lines += _start("measured", start)
    unknown_here = () if found["starts"] else provenance.ELSEWHERE
    return "\n".join([*lines, "", *_today(found["today"], unknown_here)]) + "\n"


def _base_text(found: Mapping[str, Any]) -> str:
    how = (
        "trained by `rlanything bootstrap`"
        if found["embedded"]
        else "checkpoints that the configuration names"
    )
    lines = [f"{found['arm']}, of the base models: {how}", "", "models"]
    lines += [f"  {role}: {_model(made)}" for role, made in found["models"].items()]
    for start in found["measured"]["starts"]:
        lines += _start("measured", start)
    titles = {arm: f"the base models that {arm} began with" for arm in found["today"]}
    none = [] if titles else ["  no recorded run to compare with"]
    return "\n".join([*lines, "", *_today(found["today"], (), titles), *none]) + "\n"


def _model(made: Mapping[str, Any]) -> str:
    if "endpoint" in made:
        return f"{made['model']}, behind the endpoint {made['endpoint']}"
    name = made["path"] + (f"@{made['revision']}" if made["revision"] else "")
    if sources.COMMIT in made:
        return f"{name}, commit {_hash(made[sources.COMMIT])}"
    files = made.get("files")
    return (
        f"{name}, {len(files)} files, {_hash(content_id(files))}" if files else f"{name}, not on this machine"
    )


def divided(record: Mapping[str, Any]) -> list[str]:
    """A line for each division of a run that had several; [] for one that had one alone."""
    lines = []
    for division in record.get("divisions", []):
        first = ", ".join(f"seed {seed} from iteration {k}" for seed, k in division["first"].items())
        values = " ".join(f"{key}={json.dumps(value)}" for key, value in division["values"].items())
        lines.append(f"divided as {values}: {first}")
    return lines


def _start(title: str, start: Mapping[str, Any]) -> list[str]:
    machine, git = start["machine"], start["git"]
    resumed = ", ".join(f"seed {s} after {n}" for s, n in start["published"].items() if n)
    lines = [
        f"{title}: {start['at']}",
        f"  command    {start['command']}",
        f"  git        {_git(git)}",
        f"  machine    {machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']}",
        f"  software   Python {machine['python']}, {_packages(start['packages'])}",
        f"  settings   {' '.join(f'{k}={v}' for k, v in machine['settings'].items()) or 'none'}",
    ]
    if start.get("imported"):
        lines.append(f"  code       imported from {start['imported']}, and not from the project")
    if machine["accelerators"]:
        lines.append(f"  devices    {', '.join(machine['accelerators'])}")
    if resumed:
        lines.append(f"  resumed    {resumed} iterations")
    return lines


def _git(git: Mapping[str, Any] | None) -> str:
    if git is None:
        return "no repository"
    lines = f"{len(git['diff'].splitlines())} lines of diff"
    state = "changes not known" if git["clean"] is None else "clean" if git["clean"] else lines
    loose = f", {len(git['untracked'])} untracked files" if git["untracked"] else ""
    return f"{git['commit'][:12]}, {state}{loose}"


def _packages(installed: Mapping[str, str]) -> str:
    named = [
        f"{name} {installed[name]}" for name in ("torch", "transformers", "lightning") if name in installed
    ]
    return ", ".join([*named, f"{len(installed)} packages in all"])


def _today(
    differing: Mapping[str, Sequence[str]], unknown_here: Sequence[str], titles: Mapping[str, str] = _PARTS
) -> list[str]:
    lines = ["today"]
    for part, title in titles.items():
        found = differing[part]
        state = "unknown" if part in unknown_here else "DIFFERS" if found else "same   "
        lines.append(f"  {state}  {title}")
        lines += [f"             {sentence}" for sentence in found[:MOST]]
        if len(found) > MOST:
            lines.append(f"             and {len(found) - MOST} more (--json has them)")
    return lines


def _hash(value: str | None) -> str:
    return value[:12] if value else "missing"
