"""Two seeds meet in one phase of their training, and seed 1 fails there.

Python imports this file first in every process whose PYTHONPATH names its folder. PHASE names the phase. MEETING is a
folder in which the seeds tell that they are there. Seed 0 stays in the phase and does not listen to SIGTERM.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlanything.core.errors import MachineError

FAILING = 1


def owner(phase: str) -> tuple[Any, str]:
    """The module or class, and its function, that runs in a phase."""
    from rlanything.learn.module import JointModule
    from rlanything.loop.rollout import RolloutWorker
    from rlanything.runs import seedrun
    from rlanything.runs.folder import RunFolder

    return {
        "load": (seedrun, "make_parts"),
        "rollout": (RolloutWorker, "roll_out"),
        "learn": (JointModule, "training_step"),
        "publish": (RunFolder, "publish"),
        "export": (seedrun.SeedRun, "_finish"),
    }[phase]


def disturb(phase: str, seed: int, meeting: Path) -> None:
    """From now on, the function of the phase is where the seeds meet."""
    place, name = owner(phase)
    work = getattr(place, name)

    def meets(*call: Any) -> Any:
        if phase != "publish":
            work(*call)
        (meeting / f"seed-{seed}").touch()
        if seed != FAILING:
            signal.signal(signal.SIGTERM, lambda number, frame: None)
            time.sleep(600)
        while not (meeting / f"seed-{1 - seed}").exists():
            time.sleep(0.01)
        (meeting / "failed").touch()
        if phase != "publish":
            raise MachineError(f"seed {seed} fails in the phase {phase}")
        folder, iteration, _ = call
        (folder.iterations / f"{iteration:04d}").touch()  # a file in the place of the folder
        return work(*call)

    setattr(place, name, meets)


def disturbed(train_seed: Callable[..., None]) -> Callable[..., None]:
    """The function of a worker process, with the phase disturbed."""

    def wrapper(*call: Any) -> None:
        disturb(os.environ["PHASE"], call[-1], Path(os.environ["MEETING"]))
        train_seed(*call)

    return wrapper


if any("forkserver" in word or "spawn_main" in word for word in sys.orig_argv):
    from rlanything.stages import train

    train.train_seed = disturbed(train.train_seed)
