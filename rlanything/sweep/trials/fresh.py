"""Runs of a trial on fresh seeds: seeds that had no part in choosing the winner."""

from __future__ import annotations

import shutil
from functools import lru_cache
from pathlib import Path

from rlanything.files.atomic import write_text
from rlanything.files.reader import read_object, read_text
from rlanything.runs.layout import Layout
from rlanything.sweep.declare.sweep import Sweep
from rlanything.sweep.trials.measure import Measured, measure

ERROR = "error.txt"
"""The error of a run that crashed, in its folder. Optuna takes no attributes for a trial that has ended."""


class FreshRuns:
    """All of a study's runs on fresh seeds, in one folder."""

    def __init__(self, root: Path, sweep: Sweep) -> None:
        self.root = root
        self.sweep = sweep
        self.seeds = range(sweep.seeds, sweep.seeds + sweep.confirm)

    def folder(self, number: int) -> Path:
        """Where trial `number` is run again."""
        return self.root / f"{number:04d}"

    def earlier(self, number: int) -> Path:
        """Where its runs are kept while more seeds are trained."""
        return self.folder(number) / "earlier"

    def is_finished(self, number: int) -> bool:
        """Whether there are fresh seeds, and all of them are evaluated."""
        return self.sweep.confirm > 0 and not self._incomplete(number)

    def measured(self, number: int) -> Measured | None:
        """What the trial achieved on the fresh seeds; None where they are not all evaluated."""
        if not self.is_finished(number):
            return None
        return measure(self.folder(number), self.sweep.arms, self.sweep.last_evaluations).at(self.seeds)

    def reopen(self, number: int) -> None:
        """Remove evaluations that lack a fresh seed (`confirm` was raised), and move their runs to `earlier`."""
        for file in self._incomplete(number):
            runs = self.folder(number) / "runs" / file.stem
            if file.is_file() and runs.is_dir():
                aside = self.earlier(number) / "runs" / file.stem
                shutil.rmtree(aside, ignore_errors=True)
                aside.parent.mkdir(parents=True, exist_ok=True)
                runs.rename(aside)
            file.unlink(missing_ok=True)

    def error(self, number: int) -> str | None:
        """The error of a run that crashed; None for any other."""
        file = self.folder(number) / ERROR
        return read_text(file) if file.is_file() else None

    def record_error(self, number: int, error: str) -> None:
        """Note that a run crashed."""
        write_text(self.folder(number) / ERROR, error)

    def forget_errors(self) -> None:
        """Let the runs that crashed be tried again."""
        for file in self.root.glob(f"*/{ERROR}"):
            file.unlink(missing_ok=True)

    def _incomplete(self, number: int) -> list[Path]:
        """The trial's evaluations that lack a fresh seed."""
        files = [Layout(self.folder(number)).evaluation(arm) for arm in self.sweep.arms]
        return [file for file in files if not set(self.seeds) <= _evaluated(file)]


def _evaluated(file: Path) -> frozenset[int]:
    """The seeds in an evaluation; none where there is no such file."""
    return _seeds(file, file.stat().st_mtime_ns) if file.is_file() else frozenset()


@lru_cache(maxsize=64)
def _seeds(file: Path, changed: int) -> frozenset[int]:
    """`changed`: the file's time stamp, so that it is read once: a worker asks twice a second."""
    return frozenset(int(seed) for seed in read_object(file)["seeds"])
