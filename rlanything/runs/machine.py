"""What a command runs on: processor, memory, accelerators, installed packages, and the git revision of the code."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from rlanything.core.ids import content_id

RESULTS = ("dvc.lock", "report", "provenance")
"""What the pipeline itself writes and git keeps: it differs while a pipeline runs, and decides nothing."""
MOST = 1_000_000
"""Characters of a diff that are recorded; of a longer one its beginning and the hash of the whole."""
SETTINGS = (
    "ATEN_CPU_CAPABILITY",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_VISIBLE_DEVICES",
    "WORLD_SIZE",
)
"""Environment variables that can change what is computed. No others are recorded, since some hold secrets.

The number of threads is not among them: every stage sets it to one itself.
"""


def machine() -> dict[str, Any]:
    """The hardware, and what of it PyTorch uses."""
    import psutil
    import torch

    devices = range(torch.cuda.device_count())
    return {
        "system": platform.platform(),
        "python": platform.python_version(),
        "cpu": cpu_model(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "accelerators": [torch.cuda.get_device_name(device) for device in devices],
        "settings": {name: os.environ[name] for name in SETTINGS if name in os.environ},
    }


def packages() -> dict[str, str]:
    """Name -> version of every installed distribution."""
    return {str(d.metadata["Name"]): d.version for d in sorted(metadata.distributions(), key=_name)}


def cpu_model() -> str:
    """The processor's name, as Linux gives it or as Python knows it."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _name(distribution: metadata.Distribution) -> str:
    return str(distribution.metadata["Name"]).lower()


def revision(root: Path) -> dict[str, Any] | None:
    """Commit, diff against it and untracked files; None where there is no git repository (or no git)."""
    commit = _git(root, "rev-parse", "HEAD")
    if commit is None:
        return None
    paths = ("--", ".", *(f":(exclude){name}" for name in RESULTS))
    diff = _git(root, "diff", "HEAD", *paths) or ""
    untracked = (_git(root, "ls-files", "--others", "--exclude-standard", *paths) or "").splitlines()
    return {
        "commit": commit.strip(),
        "clean": not diff and not untracked,
        "diff": diff[:MOST],
        "diff_sha256": content_id(diff) if diff else None,
        "untracked": untracked,
    }


def _git(root: Path, *words: str) -> str | None:
    """What git answers in `root`, or None."""
    command = ["git", "-C", str(root), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout
