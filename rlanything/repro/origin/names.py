"""What the name in `rlanything provenance NAME` means."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rlanything.buffer.views.find.places import unfinished
from rlanything.config import CONTROLS, Config
from rlanything.core.errors import ConfigError, unknown_run
from rlanything.repro.origin.base import base_page
from rlanything.repro.origin.record import page, recorded
from rlanything.runs import provenance


def of(name: str, config: Config, root: Path) -> dict[str, Any]:
    """The page of what `name` means: a run or its arm, or the base models (`config.CONTROLS`). Raises `ConfigError`."""
    return base_page(name, config, root) if name in CONTROLS else page(arm_of(name, root), config, root)


def arm_of(name: str, root: Path) -> str:
    """The arm that `name` means: `full`, `full/seed-0`, or a path to one of them below `root`. Raises `ConfigError`."""
    known = recorded(root)
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


def _seeds(root: Path, arm: str) -> list[str]:
    return [f"seed-{seed}" for seed in provenance.read(root, arm)["seeds"]]
