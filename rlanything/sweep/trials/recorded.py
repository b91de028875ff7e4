"""Whether the project's own tasks and base models would come out the same today, as far as dvc.lock says.

After `rlanything config write` or an edit of code, DVC would make these stages again. Where dvc.lock has no such stage,
it is not known.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlanything.config import Config
from rlanything.files.hashes import files_in
from rlanything.files.project import PARAMS
from rlanything.files.yaml_file import read_mapping
from rlanything.planning.pipeline import CODE, Pipeline
from rlanything.stages import BEFORE_TRAINING

COMPARED = ("experiments", *CODE)
"""Folders with prompts and code."""
MD5 = "md5"
"""How DVC hashes since its third version. Entries of an older one are not compared."""
_Stages = Mapping[str, Mapping[str, Any]]
"""What dvc.lock says of each stage before the training, in their order."""


def same(config: Config, pipeline: Pipeline, *, older: bool) -> bool:
    """Whether the project's own data/ and models/ were made with these parameters, and with today's code and prompts.

    older: whether those of older code will do.
    """
    lock = pipeline.root / "dvc.lock"
    found = (read_mapping(lock).get("stages") or {}) if lock.is_file() else {}
    stages = {name: found[name] for name in BEFORE_TRAINING if found.get(name)}
    return _same_values(config, pipeline, stages) and (older or _same_files(pipeline.root, stages))


def _same_values(config: Config, pipeline: Pipeline, stages: _Stages) -> bool:
    data = config.model_dump(mode="json", by_alias=True)
    for name, stage in stages.items():
        recorded = (stage.get("params") or {}).get(PARAMS) or {}
        now = pipeline.params(name, data)
        if any(key in recorded and recorded[key] != value for key, value in now.items()):
            return False
    return True


def _same_files(root: Path, stages: _Stages) -> bool:
    """Whether code, prompts, and the tasks that the base models were made with (by dvc.lock alone) are the same.

    Checkpoints are not compared: they may have gigabytes, and this is asked whenever a trial starts.
    """
    made: dict[str, str] = {}
    for stage in stages.values():
        for dep in stage.get("deps") or ():
            path, md5 = dep["path"], dep.get(MD5)
            now = _md5(root / path) if Path(path).parts[0] in COMPARED else made.get(path, md5)
            if dep.get("hash") == MD5 and now != md5:
                return False
        made |= {out["path"]: out.get(MD5) for out in stage.get("outs") or ()}
    return True


def _md5(place: Path) -> str:
    """The hash that DVC gives a file, or a folder by the hashes of its files; '' where there is neither."""
    if place.is_file():
        return hashlib.md5(place.read_bytes(), usedforsecurity=False).hexdigest()
    if not place.is_dir():
        return ""
    files = {path.relative_to(place).as_posix(): _md5(path) for path in files_in(place)}
    listed = json.dumps([{MD5: files[name], "relpath": name} for name in sorted(files)])
    return hashlib.md5(listed.encode(), usedforsecurity=False).hexdigest() + ".dir"
