"""What params.yaml has that the last commit has not. An experiment that was interrupted leaves its values there."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from rlanything.files.reader import FileError
from rlanything.files.yaml_file import mapping, read_mapping
from rlanything.runs.provenance import changed, flat

MOST = 3
"""How many differences are named."""


def note(path: Path) -> str:
    """A message where the file at `path` has other values than in the last commit, and how to go on; otherwise ''."""
    committed = _committed(path)
    if committed is None:
        return ""
    try:
        found = changed(flat(mapping(path, committed)), flat(read_mapping(path)))
    except FileError:  # whoever reads the file says so
        return ""
    if not found:
        return ""
    return (
        f"{path} is not that of the last commit ({few(found)}). `dvc exp run -S` leaves its values "
        f"there, also when it is interrupted: the same command goes on, "
        "`rlanything config restore` takes them and the results back"
    )


def few(found: Sequence[str]) -> str:
    """The first differences, and how many there are beside."""
    more = f", and {len(found) - MOST} more" if len(found) > MOST else ""
    return ", ".join(found[:MOST]) + more


def _committed(path: Path) -> str | None:
    """The file in the last commit; None where git has none."""
    command = ["git", "-C", str(path.parent), "show", f"HEAD:./{path.name}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError:  # no git
        return None
    return done.stdout if done.returncode == 0 else None
