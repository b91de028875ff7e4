"""What a sweep's stage in sweeps/dvc.yaml depends on. `make sweep` declares the stage with it.

python -m rlanything.sweep.dependencies experiments/sweep/thresholds.yaml
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlanything.planning.pipeline import look_up
from rlanything.runs.imports import code_files, targets, whole_folders
from rlanything.stages.declared import STAGES
from rlanything.sweep.declare.check import compose_base
from rlanything.sweep.declare.file import load_sweep

COMMAND = "rlanything.sweep.command"
INPUTS = ("data/tasks", "experiments", "models")


def dependencies(path: Path, root: Path) -> list[str]:
    """The files and folders that decide what the sweep in `path` finds. Raises `ConfigError`."""
    return of_command(COMMAND, compose_base(load_sweep(path), root))


def of_command(command: str, base: Mapping[str, Any]) -> list[str]:
    """What a stage depends on that runs stages of its own: the inputs and its code, as for other stages.

    The code is found from the imports of the command, and from the classes that the configuration names. No such stage
    makes the report, so the code of that stage is left out.

    Args:
        command: the module that is run.
        base: the configuration that its stages have in common.
    """
    made = {name for stage in STAGES for name in stage.makes}
    classes = targets([look_up(base, name) for name in sorted(made)])
    report = [stage.module for stage in STAGES if stage.name == "report"]
    return [*INPUTS, *whole_folders(code_files([command, *classes], without=report))]


def options(names: list[str]) -> str:
    """The same as options of `dvc stage add`, quoted for a shell."""
    return " ".join(f"--deps {shlex.quote(name)}" for name in names)


if __name__ == "__main__":
    print(options(dependencies(Path(sys.argv[1]), Path())))
