"""The machine and software of a run: processor, memory, accelerators, installed packages, git revision."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from rlanything.core.ids import content_id
from rlanything.files.project import PARAMS

RESULTS = ("dvc.lock", "report", "provenance")
"""Paths that the pipeline writes and git tracks.

They change while it runs and affect no result, so the diff omits them.
"""
PROJECT = ("--", ".", *(f":(exclude){name}" for name in RESULTS))
"""The arguments with which git looks at a project's files."""
MOST = 1_000_000
"""How many characters of a diff are recorded. The hash is of the whole diff."""
SETTINGS = (
    "ATEN_CPU_CAPABILITY",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_VISIBLE_DEVICES",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "NVIDIA_TF32_OVERRIDE",
    "ONEDNN_MAX_CPU_ISA",
    "WORLD_SIZE",
)
"""Environment variables that can change results. No others are recorded, because some hold secrets.

The number of threads is not among them, because every stage sets it to one.
"""

_NAME = re.compile(r"[\w.-]+")
"""The name at the beginning of a requirement."""


def machine() -> dict[str, Any]:
    """The hardware and operating system, and the parts of the hardware that PyTorch uses."""
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


def versions(modules: Iterable[str]) -> dict[str, str]:
    """Name -> version of the installed distributions that contain these top-level modules, and of their requirements.

    Indirect requirements are not followed. Python is listed too. Distributions that are not installed are left out.
    """
    holders = _holders()
    direct = {name for module in modules for name in holders.get(module, ())}
    needed = {_NAME.match(text)[0] for name in direct for text in _required(name)}  # type: ignore[index]
    found = {"Python": platform.python_version()}
    for name in direct | needed:
        with suppress(metadata.PackageNotFoundError):
            distribution = metadata.distribution(name)
            found[str(distribution.metadata["Name"])] = distribution.version
    return dict(sorted(found.items()))


@cache
def _holders() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


def _required(name: str) -> list[str]:
    """The requirements that a distribution declares, such as `numpy>=1.17`, without those of its extras."""
    return [text for text in metadata.requires(name) or () if "extra ==" not in text]


def kind() -> str:
    """The processor and the instructions of it that PyTorch uses. Processors of one kind round alike."""
    import torch

    return f"{cpu_model()} ({torch.backends.cpu.get_cpu_capability()})"


def cpu_model() -> str:
    """The processor's name, from /proc/cpuinfo or, where there is none, from Python."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _name(distribution: metadata.Distribution) -> str:
    return str(distribution.metadata["Name"]).lower()


def revision(root: Path, code: Iterable[str] = ()) -> dict[str, Any] | None:
    """The git commit, the diff against it and the untracked files; None without a git repository or without git.

    clean: None where git cannot tell what changed, or was told not to look.
    code: files of the project that a run imports. Those that git ignores are named among the untracked ones.
    """
    place = tracked(root).resolve()
    commit = _git(place, "rev-parse", "HEAD")
    if commit is None or not _holds(place, root):
        return None
    diff, others, known = (
        diff_since("HEAD", root),
        _names(place, "--others", "--exclude-standard"),
        _names(place),
    )
    untracked = sorted({*(others or ()), *({*code} - {*known} if known is not None else ())})
    looked = None not in (diff, others, known) and not _hidden(place)
    return {
        "commit": commit.strip(),
        "clean": False if diff or untracked else True if looked else None,
        "diff": (diff or "")[:MOST],
        "diff_sha256": content_id(diff) if diff else None,
        "untracked": untracked,
    }


def diff_since(commit: str, root: Path, without: Iterable[str] = ()) -> str | None:
    """What git's files of the project at `root` have changed since a commit; None where git cannot tell.

    without: files that are left out. The user's settings of `git diff` change nothing.
    """
    plain = ("--no-ext-diff", "--no-textconv", "--no-color")
    left = (f":(exclude,literal){name}" for name in without)
    return _git(tracked(root), "diff", *plain, commit, *PROJECT, *left)


def imported_from(root: Path) -> str | None:
    """The folder from which this program was imported, where that is not the project of `root`."""
    place = Path(__file__).resolve().parents[1]
    return None if place == (tracked(root) / place.name).resolve() else str(place.parent)


def _holds(place: Path, root: Path) -> bool:
    """Whether git's repository is that of the project: its own, or one that tracks the project's configuration.

    One around it may be anybody's, such as that of a home folder.
    """
    own = place == root.resolve() and _git(place, "rev-parse", "--show-prefix") == "\n"
    return own or bool(_git(place, "ls-files", "--", PARAMS, "dvc.yaml"))


def _names(place: Path, *words: str) -> list[str] | None:
    """The project's files that `git ls-files` lists; None where it fails."""
    found = _git(place, "ls-files", "-z", *words, *PROJECT)
    return None if found is None else found.split("\0")[:-1]


def _hidden(place: Path) -> bool:
    """Whether git was told not to look whether some file changed (`git update-index --assume-unchanged`)."""
    tagged = (line.partition(" ") for line in _names(place, "-v") or ())
    return any(tag.islower() or (tag == "S" and (place / name).exists()) for tag, _, name in tagged)


def tracked(root: Path) -> Path:
    """The project whose files `root` has: itself, or the one in whose ignored folder it lies, such as a workspace.

    Git sees no change in a folder that it ignores.
    """
    resolved = root.resolve()
    return next(
        (p for p in (resolved, *resolved.parents) if _git(p, "check-ignore", "-q", ".") is None), root
    )


def _git(root: Path, *words: str) -> str | None:
    """The output of a git command in `root`; None when it fails."""
    command = ["git", "-C", str(root), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout
