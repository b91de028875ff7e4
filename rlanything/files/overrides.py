"""The overrides that params.yaml was written with, by the command in its header."""

from __future__ import annotations

import shlex
from pathlib import Path

from rlanything.files.reader import FileError, read_text

_WRITTEN = "#     rlanything config write"


def overrides(params: Path) -> list[str]:
    """The overrides with which a params.yaml was written; none where its header does not say."""
    try:
        lines = read_text(params).splitlines()[:4] if params.is_file() else []
    except FileError:
        return []
    for line in lines:
        if line.startswith(_WRITTEN):
            return _words(line.removeprefix(_WRITTEN))
    return []


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:  # an open quote, which `config write` does not leave
        return []
