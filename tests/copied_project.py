"""A copy of the project, in which the commands of a page are run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def copy_project(root: Path) -> None:
    """Copy what a training needs to `root`: the sources, the experiments and the pipeline."""
    for name in ("envs", "experiments", "rlanything"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "dvc.yaml", "params.yaml"):
        shutil.copy(ROOT / name, root)


def python(root: Path, *words: str) -> None:
    """Python with the sources of `root`."""
    result = subprocess.run(
        [sys.executable, *words],
        cwd=root,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
