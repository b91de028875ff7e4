"""The stages of a pipeline: which runs now, whose output is there, and how long each took when it last ran here."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from rlanything.config import Config
from rlanything.files.project import PRIVATE
from rlanything.stages import BOOTSTRAP, EVALUATE, LABEL, REPORT, TASKS, TRAIN, of_arm
from rlanything.stages.declared import STAGES
from rlanything.stages.stage import Stage
from rlanything.watch import tolerant
from rlanything.watch.holders import Holder, holder, lock_of

RUNNING, THERE, TO_DO = "running", "there", "to do"
TIMES = Path(PRIVATE, "timings", "stages.jsonl")
"""What each stage took when it last ran here, a line each time that one ends. Not a result."""
_BEFORE: Mapping[str, Sequence[str]] = {
    BOOTSTRAP: (TASKS,),
    TRAIN: (TASKS, BOOTSTRAP),
    LABEL: (TASKS, BOOTSTRAP),
    EVALUATE: (TASKS, BOOTSTRAP, TRAIN, LABEL),
    REPORT: (TASKS, BOOTSTRAP, TRAIN, LABEL, EVALUATE),
}
"""Stage -> stages whose output it reads."""


@dataclass(frozen=True)
class StageState:
    """One command of the pipeline. seconds: what it took when it last ran here. made: when its output was.

    left: seconds until it ends, None where nothing says so; 0 for one that has nothing to do.
    """

    name: str
    arm: str
    state: str
    seconds: float | None
    made: float | None
    holder: Holder | None
    left: float | None = 0.0

    @property
    def words(self) -> str:
        """The words after `rlanything` that run it."""
        return of_arm(self.name, self.arm) if self.arm else self.name

    @property
    def spent(self) -> float | None:
        """Seconds since it was started; None while it does not run."""
        return None if self.holder is None else max(0.0, time.time() - self.holder.since)


def states(config: Config, root: Path) -> list[StageState]:
    """Every command of the pipeline, in its order. What a running one will change counts as still to do."""
    took, found = times(root), []
    for stage in STAGES:
        if not stage.needed(config):
            continue
        for arm in stage.arms(config) if stage.arms else ("",):
            found.append(_state(stage, arm, root, took))
    running = [one for one in found if one.state == RUNNING]
    return [replace(one, state=TO_DO) if _stale(one, running) else one for one in found]


def _stale(one: StageState, running: Sequence[StageState]) -> bool:
    """Whether its output is there, but a stage runs whose output it reads."""
    return one.state == THERE and any(
        other.name in _BEFORE.get(one.name, ()) and (not other.arm or one.arm in ("", other.arm))
        for other in running
    )


def _state(stage: Stage, arm: str, root: Path, took: Mapping[str, float]) -> StageState:
    words = of_arm(stage.name, arm) if arm else stage.name
    held = holder(lock_of(root, words))
    first = stage.outs[0]
    name = next(iter(first)) if isinstance(first, dict) else str(first)
    made = _made(root / name.replace("${key}", arm))
    state = RUNNING if held else THERE if made else TO_DO
    return StageState(stage.name, arm, state, took.get(words), made, held)


def _made(path: Path) -> float | None:
    with suppress(OSError):
        return path.stat().st_mtime
    return None


def times(root: Path) -> dict[str, float]:
    """Command -> seconds that it took when it last ran in this project."""
    found = {}
    for row in tolerant.lines(root / TIMES):
        words, seconds = row.get("command"), tolerant.number_at(row, "seconds")
        if isinstance(words, str) and seconds is not None:
            found[words] = seconds
    return found


def keep_time(root: Path, words: str, seconds: float) -> None:
    """Add what a stage took. A disk that refuses it does not matter: it only says how long the next one may take."""
    with suppress(OSError):
        (root / TIMES).parent.mkdir(parents=True, exist_ok=True)
        with (root / TIMES).open("a", encoding="utf-8") as file:
            file.write(
                json.dumps({"command": words, "seconds": round(seconds, 1), "ended": time.time()}) + "\n"
            )
