"""What a ladder's stage in checks/dvc.yaml depends on. `make check` declares the stage with it.

python -m rlanything.checks.dependencies experiments/check/ladder.yaml
"""

from __future__ import annotations

import sys
from pathlib import Path

from rlanything.checks.ladder.declare import load_ladder
from rlanything.planning import compose
from rlanything.sweep.dependencies import of_command, options

COMMAND = "rlanything.checks.ladder.command"


def dependencies(path: Path, root: Path) -> list[str]:
    """The files and folders that decide what the ladder in `path` finds. Raises `ConfigError`."""
    return of_command(COMMAND, compose.compose(load_ladder(path).hydra_overrides(workers=1), root))


if __name__ == "__main__":
    print(options(dependencies(Path(sys.argv[1]), Path())))
