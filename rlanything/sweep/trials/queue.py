"""What a worker does next: a trial that lost its worker, a new trial, or a trial again on fresh seeds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from optuna.trial import FrozenTrial, TrialState

from rlanything.sweep.study.study import SweepStudy
from rlanything.sweep.trials.board import Board
from rlanything.sweep.trials.claims import Claims
from rlanything.sweep.trials.jobs import FreshJob, Job, TrialJob, fresh_claim, trial_claim


class JobQueue:
    """Takes jobs from the study that all workers share."""

    def __init__(self, board: Board, claims: Claims, say: Callable[[str], None]) -> None:
        self.board = board
        self.study: SweepStudy = board.study
        self.claims = claims
        self.say = say

    def take(self, running: Sequence[Job]) -> Job | None:
        """The next job, claimed; None when there is nothing to do now. `running`: this worker's other jobs."""
        with self.study.lock():
            trial = self._abandoned() or self._new(running)
            if trial is not None:
                return TrialJob(self.board, trial)
            number = self._unconfirmed()
            return None if number is None else FreshJob(self.board, number)

    def _abandoned(self) -> FrozenTrial | None:
        """A trial that is running in the study and that no worker has."""
        for trial in self.study.trials():
            if trial.state == TrialState.RUNNING and self.claims.take(trial_claim(trial.number)):
                self.say(f"trial {trial.number}: taken over")
                return self.study.resume(trial.number)
        return None

    def _new(self, running: Sequence[Job]) -> FrozenTrial | None:
        if self.board.repeating():
            return None
        own_s = sum(time.monotonic() - job.begun for job in running)
        trial = self.study.ask(labelled=self.board.minutes_over(own_s))
        if trial is not None:
            self.claims.take(trial_claim(trial.number))
        return trial

    def _unconfirmed(self) -> int | None:
        """A trial to be run on fresh seeds, once all trials are over."""
        return next((n for n in self.board.to_confirm() if self.claims.take(fresh_claim(n))), None)
