"""The git revision that a command runs at, and what differs from it in the working tree."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from rlanything.core.ids import content_id

RESULTS = ("dvc.lock", "report", "provenance")
"""What the pipeline itself writes and git keeps: it differs while a pipeline runs, and decides nothing."""
MOST = 1_000_000
"""Characters of a diff that are recorded; of a longer one its beginning and the hash of the whole."""


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
