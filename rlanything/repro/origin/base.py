"""What the base models are made from, and which recorded runs began with others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlanything.config import Checkpoint, Config
from rlanything.core.errors import ConfigError
from rlanything.engines import sources
from rlanything.files.hashes import file_hashes, files_in
from rlanything.repro.origin.record import recorded
from rlanything.runs import provenance
from rlanything.runs.layout import Layout


def base_page(name: str, config: Config, root: Path) -> dict[str, Any]:
    """What the base models are made from. No run has trained them, so they have no record of their own.

    Under `models`, by role: the checkpoint, and its files (path -> sha256) or commit; {} where it is not here. Under
    `today`: of each recorded arm, which files of models/ and configured checkpoints it did not begin with, or why its
    record cannot be read. `unknown`: the arms that are not compared: all where models/ is not here or not whole, and
    those without a readable record.

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
    today, unknown = _compared(root, here)
    return {
        "arm": name,
        "embedded": config.model.embedded is not None,
        "models": {role: _made_of(checkpoint, root) for role, checkpoint in roles.items()}
        | {role: {"endpoint": served[role].root, "model": served[role].model} for role in served},
        "measured": provenance.measured(root, name),
        "today": today,
        "unknown": unknown,
    }


def _compared(root: Path, here: Mapping[str, str]) -> tuple[dict[str, list[str]], list[str]]:
    """`today` and `unknown` of the page."""
    today, unknown, whole = dict[str, list[str]](), list[str](), Layout(root).bootstrap.is_file()
    for arm in recorded(root):
        try:
            record = provenance.read(root, arm)
        except ConfigError as error:
            today[arm] = [str(error)]
            unknown.append(arm)
            continue
        today[arm] = _began_with_others(record, here, root) if whole else []
    return today, unknown if whole else list(today)


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
