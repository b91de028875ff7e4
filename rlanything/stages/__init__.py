"""The stages of the pipeline: tasks, bootstrap, train, label, evaluate, report.

Their names are here, and which commands read what others write. `declared` declares each stage and what it depends on.
The code of a single run is in `runs/`.
"""

from __future__ import annotations

import os

TASKS, BOOTSTRAP, TRAIN, LABEL, EVALUATE, REPORT = (
    "tasks",
    "bootstrap",
    "train",
    "label",
    "evaluate",
    "report",
)
BEFORE_TRAINING = (TASKS, BOOTSTRAP)
"""The stages that run once for all arms, before training. They write what all others read."""
EXAM = "livebench"
"""The first word of the commands of an exam, which read a project as stages do."""
ALL = (*BEFORE_TRAINING, f"{TRAIN}*", LABEL, f"{EVALUATE}*", f"{EXAM}*")
"""Every command that reads what `BEFORE_TRAINING` writes, or writes it, as `files.locks.stage` takes them."""


def by_dvc() -> bool:
    """Whether DVC runs this command as a stage."""
    return "DVC_STAGE" in os.environ


def of_arm(stage: str, arm: str) -> str:
    """The words after `rlanything` that run a stage for one arm."""
    return f"{stage} --arm {arm}"
