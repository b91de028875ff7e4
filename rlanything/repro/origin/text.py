"""The pages of `rlanything provenance` for a terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rlanything.config import CONTROLS
from rlanything.core.ids import content_id
from rlanything.engines import sources
from rlanything.repro.origin.record import PARTS
from rlanything.runs import provenance

MOST = 8
"""How many differences of one part are printed. `--json` prints all."""


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
    return "\n".join([*lines, "", *_today(found["today"], found["unknown"], titles), *none]) + "\n"


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
    differing: Mapping[str, Sequence[str]], unknown_here: Sequence[str], titles: Mapping[str, str] = PARTS
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
