"""What the runs of a check were made from, and where: published beside the results.

provenance/<arm>.json   the record of each run (`runs/provenance.py`), the same on every machine
machines.json           the machines, packages and git commits with which runs and measurements were started, and which
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlanything.core.ids import content_id
from rlanything.files.records import write_json
from rlanything.runs import provenance
from rlanything.runs.layout import Layout

MACHINES = "machines.json"


def publish(workspace: Path, folder: Path) -> None:
    """Copy the records of the workspace's runs into `folder`, and write `MACHINES` there.

    Raises `ConfigError` for a record that cannot be read.
    """
    layout = Layout(workspace)
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(layout.provenance("any").parent.glob("[!.]*.json")):
        kept = Layout(folder).provenance(path.stem)
        kept.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, kept)
        _add(found, provenance.read(workspace, path.stem), "arms", path.stem)
    for path in sorted(layout.evaluation("any").parent.glob("[!.]*.json")):
        _add(found, provenance.measured(workspace, path.stem), "measured", path.stem)
    write_json(folder / MACHINES, list(found.values()))


def _add(found: dict[str, dict[str, Any]], record: Mapping[str, Any], what: str, arm: str) -> None:
    """Add the starts of a record to the machines that were found. what: `arms` for runs, `measured` for evaluations."""
    for start in record["starts"]:
        with_what = _summary(start)
        names = found.setdefault(content_id(with_what), {**with_what, "arms": [], "measured": []})[what]
        names += [] if arm in names else [arm]


def _summary(start: Mapping[str, Any]) -> dict[str, Any]:
    """Of a start what does not change from arm to arm. Changes that were not committed have their hash alone."""
    git = start["git"]
    kept = None if git is None else {key: git[key] for key in ("commit", "clean", "diff_sha256")}
    own = {key: start[key] for key in ("machine", "packages")}
    return {"git": kept, **own, "programs": start.get("programs", {})}
