"""A project in which checks run: the tiny project's tasks and models, and a declaration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml
from stage_cases import SMALL

from rlanything.planning import compose

ROOT = Path(__file__).parents[2]
QUICK = [
    *SMALL,
    "train.iterations=1",
    "evaluate.cooling.temperatures=[1.0,0.5]",
    "evaluate.cooling.tasks=2",
]
"""Overrides of a check that takes seconds."""


def project(tiny_project: Path, root: Path, declared: Mapping[str, object]) -> Path:
    """The project at `root`, with the declaration in tiny.yaml."""
    root.mkdir()
    for name in ("data", "models"):
        (root / name).symlink_to(tiny_project / name)
    for name in ("experiments", "envs", "rlanything", "dvc.yaml"):
        (root / name).symlink_to(ROOT / name)
    compose.write(root / "params.yaml", SMALL, root)
    (root / "tiny.yaml").write_text(yaml.safe_dump(dict(declared)))
    return root
