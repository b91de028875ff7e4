"""Where the project and its workspaces are. Imported by every command, so it imports little."""

from __future__ import annotations

import re
from pathlib import Path

from rlanything.core.errors import NO_RUN, ConfigError, unknown
from rlanything.files.project import PARAMS, PRIVATE, workspaces

KEPT = frozenset(
    {
        *("alfworld", "bootstrap", "checks", "inputs", "live", "livebench", "locks", "logs", "replies"),
        *("pictures", "restored", "started", "sweeps", "timings", "vega.js", "verifiers", "verify", "vllm"),
    }
)
"""What the project itself keeps in its `.rla/`."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}")


def project(here: Path) -> Path:
    """The nearest folder at or above `here` that is a project; `here` itself where there is none."""
    folder = here.resolve()
    for place in (folder, *folder.parents):
        if is_project(place):
            return here if place == folder else place
    return here


def is_project(folder: Path) -> bool:
    """Whether a folder has a configuration, or what one is composed of."""
    return (folder / PARAMS).is_file() or (folder / "experiments" / "config.yaml").is_file()


def find(name: str, root: Path) -> Path:
    """The folder of a workspace. Raises `ConfigError` with the nearest name."""
    known = workspaces(root)
    if name not in known:
        hint = unknown(name, known) if known else "this project has none yet"
        raise ConfigError(f"workspace {name!r}: {hint}")
    return root / PRIVATE / name


def free(name: str, root: Path) -> Path:
    """The folder for a workspace of that name, made or not. Raises `ConfigError` for a name that cannot be one."""
    place = root / PRIVATE / name
    if name.lower() in KEPT:  # some file systems do not tell the case
        raise ConfigError(
            f"workspace {name!r}: choose another name; the project keeps its own files in {place}"
        )
    if not _NAME.fullmatch(name):
        raise ConfigError(f"workspace {name!r}: choose another name, of letters, digits, _, dots and dashes")
    if place.exists() and not (place / PARAMS).is_file() and not _begun(place):
        raise ConfigError(f"workspace {name!r}: choose another name; {place} is no workspace")
    return place


def _begun(place: Path) -> bool:
    """Whether a folder without a params.yaml is a workspace whose making was killed: it holds nothing but links."""
    return place.is_dir() and all(each.is_symlink() or each.suffix == ".tmp" for each in place.iterdir())


def name_of(root: Path) -> str:
    """The name of the workspace that `root` is; '' for a folder that is none."""
    root = root.resolve()
    return root.name if root.parent.name == PRIVATE else ""


def beside(text: str, root: Path) -> str:
    """A message, of the project, that ends with its having no run yet: also with its workspaces. Others stay."""
    known = workspaces(root) if text.endswith(NO_RUN) else []
    if not known:
        return text
    return (
        f"{text}. A workspace has runs of its own (`rlanything --workspace NAME COMMAND`): {', '.join(known)}"
    )
