"""What all declarations of checks have in common: the name of the check, and where its results are published."""

from __future__ import annotations

import re
from pathlib import Path

from rlanything.core.errors import ConfigError

PLACE = "checks"
"""The folder of the project that holds the results of each check, by its name."""
NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


def check_declaration(file: Path, workers: int) -> None:
    """Raise `ConfigError` for a declaration whose file can name no check, and for less than one worker."""
    if workers < 1:
        raise ConfigError(f"--workers {workers}: at least 1 at once")
    if not NAME.fullmatch(file.stem):
        raise ConfigError(
            f"{file}: a check is named by its file; use lower-case letters, digits, '-' and '_', e.g. ladder.yaml"
        )
