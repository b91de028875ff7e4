"""A worker keeps some trials running, each in child processes, until the study has nothing left to do.

Any number of workers on any number of machines may work on one study. Killing one loses nothing: another one, or the
same command later, takes over its trials at the last published iteration.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from optuna.trial import TrialState

from rlanything.core.errors import ConfigError
from rlanything.report.formatting import plain
from rlanything.stages import TRAIN
from rlanything.sweep.declare.sweep import hydra_overrides
from rlanything.sweep.errors import ProjectChanged, SweepStopped
from rlanything.sweep.trials.board import Board
from rlanything.sweep.trials.child import Command, error_text, signature, start_command
from rlanything.sweep.trials.claims import Claims
from rlanything.sweep.trials.inputs import Inputs, missing_inputs
from rlanything.sweep.trials.jobs import Job, TrialJob
from rlanything.sweep.trials.queue import JobQueue
from rlanything.sweep.trials.status import status_line

POLL_S = 0.5
STATUS_S = 30.0
LEAST_FREE = 200 * 2**20
"""No trial is started with less free space, in bytes."""
CRASHES = 3
"""So many crashes in a row with the same error end the sweep."""
FULL = (errno.ENOSPC, errno.EDQUOT)
"""Errors that no trial is to blame for: a full disk, a used up quota."""
KEPT = 2000
"""Characters of an error that are recorded: the last ones."""


class Worker:
    """One worker.

    Args:
        board: the sweep.
        inputs: where tasks and base models come from.
        claims: the claims of all workers.
        slots: trials at once.
        say: prints a line.
        check: raises `ProjectChanged` once the project is not as it was when the sweep began.
    """

    def __init__(
        self,
        board: Board,
        inputs: Inputs,
        claims: Claims,
        slots: int,
        say: Callable[[str], None],
        check: Callable[[], None],
    ) -> None:
        self.board = board
        self.inputs = inputs
        self.claims = claims
        self.slots = slots
        self.say = say
        self.check = check
        self.queue = JobQueue(board, claims, say)
        self.jobs: list[Job] = []
        self.ended_before = board.ended()
        board.fresh.forget_errors()
        self.said = time.monotonic()

    def work(self) -> None:
        """Return when every trial is finished, by whichever worker. Raises `SweepError`, `ConfigError`, `OSError`."""
        try:
            while self._fill() or self.jobs or not self.board.is_over():
                for job in list(self.jobs):
                    self._advance(job)
                self._print_status()
                time.sleep(POLL_S)
        finally:
            for job in list(self.jobs):
                self._drop(job)

    def _fill(self) -> bool:
        """Take jobs while there is room; returns whether one was taken."""
        taken = False
        while len(self.jobs) < self.slots:
            if shutil.disk_usage(self.board.folder).free < LEAST_FREE:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.board.folder))
            job = self.queue.take(self.jobs)
            if job is None:
                break
            taken = True
            self._begin(job)
        return taken

    def _begin(self, job: Job) -> None:
        self.jobs.append(job)
        self.say(job.announcement())
        try:
            job.prepare(self.inputs)
        except ConfigError as error:
            self._crashed(job, str(error))

    def _advance(self, job: Job) -> None:
        if job.child is None:
            self._step(job)
        elif job.child.poll() is None:
            pruned = job.prune(self._check)
            if pruned is not None:
                self._end(job, pruned)
        elif job.child.returncode == 0:
            self._after_command(job)
        else:
            self._crashed(job, error_text(job.folder.log, job.child.returncode))

    def _step(self, job: Job) -> None:
        """Start the next command, or finish the job."""
        reused = job.reuse()
        if reused is not None:
            self._end(job, reused)
        elif self._must_wait(job):
            return
        elif missing_inputs(job.inputs):
            self._make_inputs(job)
        elif commands := job.folder.commands():
            if commands[0][0] == TRAIN:
                job.adopt(commands[0][-1])
            self._start(job, job.folder.path, commands[0])
        else:
            self._finish(job)

    def _must_wait(self, job: Job) -> bool:
        """Whether another worker runs the same point."""
        claim = job.waits_for()
        if claim is None:
            return False
        with self.board.study.lock():
            return self.claims.is_taken(claim)

    def _make_inputs(self, job: Job) -> None:
        """Start the next command that makes tasks or base models, unless another job does so."""
        if job.inputs == self.inputs.root:
            raise ProjectChanged(
                f"{job.inputs}: the tasks or the base models have been removed since the sweep began"
            )
        if not self.claims.take(job.inputs_claim):
            return
        sweep = self.board.sweep
        overrides = hydra_overrides(sweep, self.board.sets(job.number), job.folder.seeds)
        self.inputs.prepare(job.inputs, overrides)
        missing = missing_inputs(job.inputs)
        if missing:  # another job may have made them a moment ago
            self._start(job, job.inputs, missing[0])
        else:
            self.claims.release(job.inputs_claim)

    def _start(self, job: Job, root: Path, command: Command) -> None:
        self._check()
        claims = self.claims.descriptors(job.claim, job.inputs_claim)
        job.child = start_command(root, command, job.folder.log, claims)
        job.command, job.unsure = command, root

    def _after_command(self, job: Job) -> None:
        """Forget the command; whoever waits for inputs that it made may go on."""
        if job.makes_inputs:
            self.claims.release(job.inputs_claim)
        job.child, job.command = None, ()

    def _check(self) -> None:
        """Raise `ProjectChanged`, after removing what was made since the last check."""
        try:
            self.check()
        except ProjectChanged:
            for job in self.jobs:
                job.stop()
                job.forget()
            raise
        for job in self.jobs:
            if job.child is None:
                job.unsure = None

    def _finish(self, job: Job) -> None:
        self._check()
        try:
            results = job.finish()
        except ValueError as error:
            self._crashed(job, str(error))
        else:
            self._end(job, results)

    def _crashed(self, job: Job, error: str) -> None:
        """Record the error beside the trial. An error that no trial is to blame for ends the sweep."""
        self._check()
        full = next((number for number in FULL if os.strerror(number) in error), None)
        if full is not None:
            self._drop(job)
            raise OSError(full, os.strerror(full), str(job.folder.path))
        self._end(job, f"{job.fail(error[-KEPT:])}: {plain(error.splitlines()[-1])}")
        if isinstance(job, TrialJob):
            self._check_crashes()

    def _check_crashes(self) -> None:
        """Raise `SweepStopped` when the last trials to end all crashed alike since this worker started."""
        last = self.board.last_ended(CRASHES, self.ended_before)
        errors = {signature(t.user_attrs.get("error", "")) for t in last if t.state == TrialState.FAIL}
        if len(last) == CRASHES and all(t.state == TrialState.FAIL for t in last) and len(errors) == 1:
            numbers = ", ".join(str(t.number) for t in last)
            raise SweepStopped(
                f"trials {numbers} crashed with the same error:\n{last[-1].user_attrs['error']}\n"
                f"Logs: {self.board.folder / 'trials'}/<number>/log.txt"
            )

    def _end(self, job: Job, text: str) -> None:
        self.say(f"trial {job.number}: {text}")
        self._drop(job)

    def _drop(self, job: Job) -> None:
        job.stop()
        self._after_command(job)
        self.claims.release(job.claim)
        self.jobs.remove(job)

    def _print_status(self) -> None:
        if time.monotonic() - self.said >= STATUS_S:
            self.said = time.monotonic()
            running = {job.number: job.folder.progress() for job in self.jobs if job.child is not None}
            self.say(status_line(self.board, running, self.slots))
