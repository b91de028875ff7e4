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
        for number in self._running():
            if self._claim(trial_claim(number), number, self._running):
                self.say(f"trial {number}: taken over")
                return self.study.resume(number)
        return None

    def _running(self) -> list[int]:
        return [t.number for t in self.study.trials() if t.state == TrialState.RUNNING]

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
        left = self.board.to_confirm
        return next((n for n in left() if self._claim(fresh_claim(n), n, left)), None)

    def _claim(self, name: str, number: int, left: Callable[[], Sequence[int]]) -> bool:
        """Claim a trial that is still in `left` once it is claimed.

        A worker ends its trial and then gives up the claim, and may have done both since the caller read the study.
        """
        if not self.claims.take(name):
            return False
        if number in left():
            return True
        self.claims.release(name)
        return False
