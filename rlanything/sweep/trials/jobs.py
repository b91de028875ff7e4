"""What a worker runs to its end: a trial, or a trial again on fresh seeds. Each knows how its end is recorded."""

from __future__ import annotations

import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from optuna.trial import FrozenTrial, TrialState

from rlanything.files.reader import FileError
from rlanything.stages import BEFORE_TRAINING, TRAIN
from rlanything.stages.missing import Command
from rlanything.sweep.declare.space import SETS
from rlanything.sweep.study.study import LABEL
from rlanything.sweep.trials.board import Board
from rlanything.sweep.trials.child import kill
from rlanything.sweep.trials.folder import TrialFolder
from rlanything.sweep.trials.inputs import Inputs
from rlanything.sweep.trials.measure import finished_curve, training_curve
from rlanything.sweep.trials.status import results_text


class Job(ABC):
    """One trial's commands, one after the other, each in a child process."""

    def __init__(self, board: Board, number: int, claim: str, folder: TrialFolder) -> None:
        self.board = board
        self.number = number
        self.claim = claim
        self.folder = folder
        self.inputs = folder.path
        self.child: subprocess.Popen[bytes] | None = None
        self.command: Command = ()
        self.begun = time.monotonic()
        self.unsure: Path | None = None
        """Where a command ran since the last check that the project is unchanged."""

    @property
    def inputs_claim(self) -> str:
        """The claim on the inputs that several trials share."""
        return f"inputs-{self.inputs.name}"

    @property
    def makes_inputs(self) -> bool:
        """Whether it runs a command whose result other trials wait for."""
        return bool(self.command) and self.command[0] in BEFORE_TRAINING

    def stop(self) -> None:
        """Kill the child."""
        kill(self.child)
        self.child = None

    def forget(self) -> None:
        """Remove what was made since the project was surely unchanged."""
        if self.unsure == self.folder.path:
            self.folder.clear()
        elif self.unsure is not None:
            shutil.rmtree(self.unsure, ignore_errors=True)

    @abstractmethod
    def announcement(self) -> str:
        """What is printed when it begins."""

    @abstractmethod
    def prepare(self, inputs: Inputs) -> None:
        """Make the folder in which its commands run. Raises `ConfigError`."""

    def waits_for(self) -> str | None:
        """The claim on a running trial of the same point; None where there is none."""
        return None

    def reuse(self) -> str | None:
        """Record the result of a finished trial of the same point; returns the words for it, None without one."""
        return None

    def adopt(self, arm: str) -> None:
        """Copy the arm's seeds that were trained before and that are not here. Called before its training."""
        if self.board.earlier is None:
            return
        for place in self.board.earlier.runs(self.board.sets(self.number)):
            if self.folder.is_made_like(place, arm):
                self.folder.adopt(place, arm)

    def prune(self, check: Callable[[], None]) -> str | None:
        """Give it up where the pruner says so, after `check`; returns the words for it, None where it goes on."""
        return None

    @abstractmethod
    def finish(self) -> str:
        """Record the results; returns them as text. Raises `ValueError` for an objective that was not measured."""

    @abstractmethod
    def fail(self, error: str) -> str:
        """Record the crash; returns the words for it."""


class TrialJob(Job):
    """A trial of the study."""

    def __init__(self, board: Board, trial: FrozenTrial) -> None:
        sweep, number = board.sweep, trial.number
        super().__init__(
            board, number, trial_claim(number), TrialFolder(board.trial(number), sweep, sweep.seeds)
        )
        self.trial = trial

    def announcement(self) -> str:
        """Its number, its label, what it sets."""
        label = f" ({self.trial.user_attrs[LABEL]})" if self.trial.user_attrs.get(LABEL) else ""
        return f"trial {self.number}{label}: " + ", ".join(
            f"{key} = {value}" for key, value in self.trial.user_attrs[SETS].items()
        )

    def prepare(self, inputs: Inputs) -> None:
        """See `Job`."""
        self.inputs = self.folder.prepare(inputs, self.trial.user_attrs[SETS])

    def waits_for(self) -> str | None:
        """See `Job`."""
        other = self.board.same_point(self.number)
        if other is None or other.state != TrialState.RUNNING:
            return None
        return trial_claim(other.number)

    def reuse(self) -> str | None:
        """See `Job`."""
        other = self.board.same_point(self.number)
        if other is None or other.state != TrialState.COMPLETE:
            return None
        self.board.study.note(self.number, same_as=self.board.source(other.number))
        self.board.study.tell(self.number, other.values, TrialState.COMPLETE)
        return f"the same point as trial {other.number}"

    def prune(self, check: Callable[[], None]) -> str | None:
        """See `Job`. Reports the curve so far to the study."""
        sweep = self.board.sweep
        if sweep.pruner.kind == "none" or self.command[:1] != (TRAIN,):
            return None
        arm, metric = sweep.goals[0]
        try:
            points = training_curve(self.folder.live(arm), metric)
        except (FileError, OSError):
            if any(seed.is_dir() for seed in self.folder.live(arm)):
                raise  # it is damaged, and not gone
            return None  # the training ended, and took its live folder away while this read it
        if not self.board.study.report(self.number, points):
            return None
        check()
        self.stop()
        self._end(None, TrialState.PRUNED)
        return f"pruned after {len(points)} points of its curve"

    def finish(self) -> str:
        """See `Job`. The study learns the points that came after the last look at the training, too."""
        sweep = self.board.sweep
        if sweep.pruner.kind != "none":
            arm, metric = sweep.goals[0]
            self.board.study.report(self.number, finished_curve(self.folder.finished(arm), metric))
        self._end(self.board.objectives(self.number), TrialState.COMPLETE)
        return results_text(self.board, self.board.measured(self.number))

    def fail(self, error: str) -> str:
        """See `Job`."""
        self._end(None, TrialState.FAIL, error=error)
        return "crashed"

    def _end(self, found: list[float] | None, state: TrialState, **attributes: str) -> None:
        earlier: float = self.board.study.trials()[self.number].user_attrs.get("seconds", 0.0)
        seconds = earlier + time.monotonic() - self.begun
        self.board.study.note(self.number, seconds=seconds, **attributes)
        self.board.study.tell(self.number, found, state)


class FreshJob(Job):
    """A trial again, with fresh seeds beside those that it was chosen by."""

    def __init__(self, board: Board, number: int) -> None:
        sweep = board.sweep
        folder = TrialFolder(board.fresh.folder(number), sweep, sweep.seeds + sweep.confirm)
        super().__init__(board, number, fresh_claim(number), folder)

    def announcement(self) -> str:
        """See `Job`."""
        return f"trial {self.number}: again, with {self.board.sweep.confirm} fresh seeds"

    def prepare(self, inputs: Inputs) -> None:
        """See `Job`."""
        self.board.fresh.reopen(self.number)
        self.inputs = self.folder.prepare(inputs, self.board.sets(self.number))

    def adopt(self, arm: str) -> None:
        """See `Job`. Those that chose the trial, and fresh ones of before, come first."""
        self.folder.adopt(self.board.fresh.earlier(self.number), arm)
        self.folder.adopt(self.board.results(self.number), arm, self.board.sweep.seeds)
        super().adopt(arm)

    def finish(self) -> str:
        """See `Job`."""
        shutil.rmtree(self.board.fresh.earlier(self.number), ignore_errors=True)
        return f"fresh seeds: {results_text(self.board, self.board.fresh.measured(self.number))}"

    def fail(self, error: str) -> str:
        """See `Job`."""
        self.board.fresh.record_error(self.number, error)
        return "crashed with fresh seeds"


def trial_claim(number: int) -> str:
    """The claim on a trial."""
    return f"trial-{number:04d}"


def fresh_claim(number: int) -> str:
    """The claim on a trial's run on fresh seeds."""
    return f"fresh-{number:04d}"
