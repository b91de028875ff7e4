"""What the runs of a check were made from, and where: published beside the results.

provenance/<arm>.json   the record of each run (`runs/provenance.py`), the same on every machine
machines.json           the machines, packages and git commits with which the runs were started, and which runs
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
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(Layout(workspace).provenance("any").parent.glob("[!.]*.json")):
        kept = Layout(folder).provenance(path.stem)
        kept.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, kept)
        for start in provenance.read(workspace, path.stem)["starts"]:
            with_what = _summary(start)
            arms = found.setdefault(content_id(with_what), {**with_what, "arms": []})["arms"]
            arms += [] if path.stem in arms else [path.stem]
    write_json(folder / MACHINES, list(found.values()))


def _summary(start: Mapping[str, Any]) -> dict[str, Any]:
    """Of a start what does not change from arm to arm. Changes that were not committed have their hash alone."""
    git = start["git"]
    kept = None if git is None else {key: git[key] for key in ("commit", "clean", "diff_sha256")}
    own = {key: start[key] for key in ("machine", "packages")}
    return {"git": kept, **own, "programs": start.get("programs", {})}
