"""A worker of a sweep: keeps some trials running, each a child process, until the study has nothing left to do.

Any number of workers, on any number of machines, may work on one study. Killing one loses nothing: another, or the same
command later, takes over its trials at the last published iteration.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from optuna.trial import FrozenTrial, TrialState

from rlanything.config import ConfigError
from rlanything.report.words import plain
from rlanything.stages.layout import Layout, write_text
from rlanything.stages.sweeptrial import BEFORE, Command, Inputs, TrialFolder, overrides
from rlanything.sweep.board import ERROR, Board
from rlanything.sweep.claims import Claims
from rlanything.sweep.declare import Sweep
from rlanything.sweep.pruning import curve
from rlanything.sweep.space import SETS
from rlanything.sweep.study import LABEL, SweepStudy

POLL_S = 0.5
BEAT_S = 5.0
SAY_S = 30.0
LEAST_FREE = 200 * 2**20
"""No trial is started with less free space than this, in bytes."""
IN_A_ROW = 3
"""So many crashes in a row with the same error end the sweep."""
FULL = (errno.ENOSPC, errno.EDQUOT)
"""Errors of the operating system for which no trial is to blame: a full disk, a used up quota."""
KEPT = 2000
"""Characters of an error that are kept beside its trial: the last ones."""


class SweepError(RuntimeError):
    """The sweep cannot go on; the message says why."""


@dataclass
class Job:
    """Something to run to its end: a trial, or the winner's run on fresh seeds."""

    name: str
    number: int
    folder: TrialFolder
    inputs: Path
    fresh: bool = False
    child: subprocess.Popen[bytes] | None = None
    command: Command = ()
    begun: float = field(default_factory=time.monotonic)
    beaten: float = 0.0
    unsure: Path | None = None
    """Where a command ran since the last check that all trials are alike."""

    def forget(self) -> None:
        """Remove what was made there."""
        if self.unsure == self.folder.path:
            self.folder.clear()
        elif self.unsure is not None:
            shutil.rmtree(self.unsure, ignore_errors=True)


class Worker:
    """See the module's docstring. `slots`: trials at once; `check` raises `SweepError` once trials are not alike."""

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
        self.study: SweepStudy = board.study
        self.sweep: Sweep = board.sweep
        self.inputs = inputs
        self.claims = claims
        self.slots = slots
        self.say = say
        self.check = check
        self.jobs: list[Job] = []
        self.ended_before = board.ended()
        board.retry_fresh()
        self.said = time.monotonic()

    def work(self) -> None:
        """Return when every trial is finished, by whomever. Raises `SweepError`, `ConfigError`, `OSError`."""
        try:
            while self._fill() or self.jobs or not self.board.over():
                for job in list(self.jobs):
                    self._advance(job)
                self._progress()
                time.sleep(POLL_S)
        finally:
            for job in list(self.jobs):
                self._drop(job)

    # -- taking jobs -----------------------------------------------------------------------------------------------

    def _fill(self) -> bool:
        """Take jobs while there is room; whether one was taken."""
        taken = False
        while len(self.jobs) < self.slots:
            if shutil.disk_usage(self.board.folder).free < LEAST_FREE:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.board.folder))
            with self.study.lock():
                trial = self._left_behind() or self._next()
                fresh = None if trial else self._confirmation()
            if trial is not None:
                self._begin(trial)
            elif fresh is not None:
                self._begin_fresh(fresh)
            else:
                break
            taken = True
        return taken

    def _left_behind(self) -> FrozenTrial | None:
        """A trial that is running and that no living worker has."""
        mine = {job.number for job in self.jobs if not job.fresh}
        for trial in self.study.trials():
            if (
                trial.state == TrialState.RUNNING
                and trial.number not in mine
                and self.claims.take(_name(trial.number))
            ):
                self.say(f"trial {trial.number}: taken over")
                return self.study.resume(trial.number)
        return None

    def _next(self) -> FrozenTrial | None:
        if self.board.repeating():
            return None
        own = sum(time.monotonic() - job.begun for job in self.jobs)
        trial = self.study.ask(labelled=self.board.minutes_over(own))
        if trial is not None:
            self.claims.take(_name(trial.number))
        return trial

    def _confirmation(self) -> int | None:
        """A trial to be run on fresh seeds, once all trials are over."""
        mine = {job.number for job in self.jobs if job.fresh}
        for number in self.board.to_confirm():
            if number not in mine and self.claims.take(_fresh_name(number)):
                return number
        return None

    def _begin(self, trial: FrozenTrial) -> None:
        folder = TrialFolder(self.board.trial(trial.number), self.sweep, self.sweep.seeds)
        sets = trial.user_attrs[SETS]
        job = Job(_name(trial.number), trial.number, folder, folder.path)
        self.jobs.append(job)
        label = f" ({trial.user_attrs[LABEL]})" if trial.user_attrs.get(LABEL) else ""
        self.say(f"trial {trial.number}{label}: " + ", ".join(f"{k} = {v}" for k, v in sets.items()))
        try:
            job.inputs = folder.prepare(self.inputs.root, self.inputs, sets)
        except ConfigError as error:
            self._crashed(job, str(error))

    def _begin_fresh(self, number: int) -> None:
        seeds = self.sweep.seeds + self.sweep.confirm
        folder = TrialFolder(self.board.fresh(number), self.sweep, seeds)
        job = Job(_fresh_name(number), number, folder, folder.path, fresh=True)
        self.jobs.append(job)
        self.say(f"trial {number}: again, with {self.sweep.confirm} fresh seeds")
        self.board.reopen_fresh(number)
        try:
            job.inputs = folder.prepare(self.inputs.root, self.inputs, self.board.sets(number))
            earlier = self.board.earlier(number)
            folder.adopt(earlier, _seeds_in(earlier, self.sweep.arms))
            folder.adopt(self.board.results(number), self.sweep.seeds)
        except ConfigError as error:
            self._crashed(job, str(error))

    # -- running them ----------------------------------------------------------------------------------------------

    def _advance(self, job: Job) -> None:
        if not self._keep(job):
            self.say(f"trial {job.number}: another worker has it now")
            self._drop(job)
        elif job.child is None:
            self._step(job)
        elif job.child.poll() is None:
            self._maybe_prune(job)
        elif job.child.returncode == 0:
            job.child = None
            self._done_with_inputs(job)
        else:
            self._crashed(job, _ending(job.folder.path / "log.txt", job.child.returncode))

    def _keep(self, job: Job) -> bool:
        """Touch the claim now and then; False when it is another worker's by now."""
        now = time.monotonic()
        if now - job.beaten < BEAT_S:
            return True
        job.beaten = now
        return self.claims.keep(job.name) and (not _for_inputs(job) or self.claims.keep(_inputs(job)))

    def _step(self, job: Job) -> None:
        """Start the next command, or finish the job. Inputs that several trials need are made by one of them."""
        if not job.fresh and self._same(job):
            return
        missing = self.inputs.missing(job.inputs)
        if missing and job.inputs == self.inputs.root:
            raise SweepError(f"{job.inputs}: the tasks or the base models are gone since the sweep began")
        if missing:
            with self.study.lock():
                if not self.claims.take(_inputs(job)):
                    return
            words = overrides(self.sweep, self.board.sets(job.number), job.folder.seeds)
            self.inputs.prepare(job.inputs, words)
            self._run(job, job.inputs, missing[0])
            return
        commands = job.folder.commands()
        if commands:
            self._run(job, job.folder.path, commands[0])
        else:
            self._finish(job)

    def _same(self, job: Job) -> bool:
        """Whether the same point was run, whose result is taken over, or is being run, which is waited for."""
        twin = self.board.twin(job.number)
        if twin is None:
            return False
        if twin.state == TrialState.RUNNING:
            return self.claims.held(_name(twin.number))
        self.study.note(job.number, same_as=self.board.source(twin.number))
        self.study.tell(job.number, twin.values, TrialState.COMPLETE)
        self.say(f"trial {job.number}: the same point as trial {twin.number}")
        self._drop(job)
        return True

    def _done_with_inputs(self, job: Job) -> None:
        if _for_inputs(job):
            self.claims.release(_inputs(job))
        job.command = ()

    def _run(self, job: Job, root: Path, command: Command) -> None:
        self._check()
        words = [sys.executable, "-m", "rlanything", "--root", str(root), *command]
        with (job.folder.path / "log.txt").open("ab") as log:
            log.write(f"$ rlanything --root {root} {' '.join(command)}\n".encode())
            log.flush()
            job.child = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                env={**os.environ, "OMP_NUM_THREADS": "1"}, preexec_fn=_die_with_parent,  # noqa: PLW1509  no threads here
            )  # fmt: skip
        job.command, job.unsure = command, root
        self.claims.started(job.name, psutil.Process(job.child.pid))

    def _maybe_prune(self, job: Job) -> None:
        if self.sweep.pruner.kind == "none" or job.fresh or job.command[:1] != ("train",):
            return
        arm, metric = self.sweep.goals[0]
        points = curve(job.folder.live(arm), metric)
        if self.study.report(job.number, points):
            self._check()
            self._kill(job)
            self.study.note(job.number, seconds=self._seconds(job))
            self.study.tell(job.number, None, TrialState.PRUNED)
            self.say(f"trial {job.number}: pruned after {len(points)} points of its curve")
            self._drop(job)

    def _check(self) -> None:
        """Raise `SweepError` when the trials are no longer alike; what was made since they surely were is removed."""
        try:
            self.check()
        except SweepError:
            for job in self.jobs:
                self._kill(job)
                job.forget()
            raise
        for job in self.jobs:
            if job.child is None:
                job.unsure = None

    # -- how they end ----------------------------------------------------------------------------------------------

    def _finish(self, job: Job) -> None:
        if not self.claims.keep(job.name):
            self._drop(job)
            return
        self._check()
        if not job.fresh:
            try:
                found = self.board.objectives(job.number)
            except ValueError as error:
                self._crashed(job, str(error))
                return
            self.study.note(job.number, seconds=self._seconds(job))
            self.study.tell(job.number, found, TrialState.COMPLETE)
        else:
            shutil.rmtree(self.board.earlier(job.number), ignore_errors=True)
        self.say(f"trial {job.number}: {self.board.sentence(job.number, fresh=job.fresh)}")
        self._drop(job)

    def _crashed(self, job: Job, error: str) -> None:
        """A trial that fails is recorded with its error; what no trial is to blame for ends the sweep."""
        if not self.claims.keep(job.name):
            self._drop(job)
            return
        self._check()
        full = next((number for number in FULL if os.strerror(number) in error), None)
        if full is not None:
            self._drop(job)
            raise OSError(full, os.strerror(full), str(job.folder.path))
        again = " with fresh seeds" if job.fresh else ""
        self.say(f"trial {job.number}{again}: crashed: {plain(error.splitlines()[-1])}")
        self._record(job, error[-KEPT:])
        self._drop(job)
        if not job.fresh:
            self._check_row()

    def _record(self, job: Job, error: str) -> None:
        if job.fresh:
            write_text(job.folder.path / ERROR, error)
            return
        self.study.note(job.number, error=error, seconds=self._seconds(job))
        self.study.tell(job.number, None, TrialState.FAIL)

    def _check_row(self) -> None:
        """Raise `SweepError` when the last trials to end all crashed alike since this worker started."""
        last = self.board.last_ended(IN_A_ROW, self.ended_before)
        errors = {_signature(t.user_attrs.get("error", "")) for t in last if t.state == TrialState.FAIL}
        if len(last) == IN_A_ROW and all(t.state == TrialState.FAIL for t in last) and len(errors) == 1:
            numbers = ", ".join(str(t.number) for t in last)
            raise SweepError(
                f"trials {numbers} crashed with the same error:\n{last[-1].user_attrs['error']}\n"
                f"Logs: {self.board.folder / 'trials'}/<number>/log.txt"
            )

    def _seconds(self, job: Job) -> float:
        earlier: float = self.study.trials()[job.number].user_attrs.get("seconds", 0.0)
        return earlier + time.monotonic() - job.begun

    def _drop(self, job: Job) -> None:
        self._kill(job)
        self._done_with_inputs(job)
        self.claims.release(job.name)
        self.jobs.remove(job)

    def _kill(self, job: Job) -> None:
        if job.child is not None and job.child.poll() is None:
            job.child.kill()
            job.child.wait()
        job.child = None

    def _progress(self) -> None:
        if time.monotonic() - self.said >= SAY_S:
            self.said = time.monotonic()
            running = {job.number: job.folder.done() for job in self.jobs if job.child is not None}
            self.say(self.board.status(running, self.slots))


def _name(number: int) -> str:
    return f"trial-{number:04d}"


def _fresh_name(number: int) -> str:
    return f"fresh-{number:04d}"


def _seeds_in(folder: Path, arms: Sequence[str]) -> int:
    """How many seeds, from 0 on, all arms were trained on."""
    layout = Layout(folder)
    return next(n for n in itertools.count() if not all(layout.run(arm, n).is_dir() for arm in arms))


def _inputs(job: Job) -> str:
    return f"inputs-{job.inputs.name}"


def _for_inputs(job: Job) -> bool:
    """Whether the job runs a command whose result other trials wait for."""
    return bool(job.command) and job.command[0] in BEFORE


def _die_with_parent() -> None:
    """On Linux a child ends with its worker, however that ends; elsewhere whoever takes over stops it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1: PR_SET_PDEATHSIG


def _ending(log: Path, code: int) -> str:
    """The last lines of a log, and the signal where one ended the process."""
    text = log.read_bytes()[-4000:].decode(errors="replace")
    said = text.rpartition("\n$ rlanything")[2].partition("\n")[2] if "\n$ rlanything" in text else text
    lines = [line for line in said.splitlines() if line.strip()][-12:]
    ended = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
    return "\n".join([*lines, ended] if code < 0 or not lines else lines)


def _signature(error: str) -> str:
    """What two crashes for the same reason have in common: the last line, without numbers."""
    return re.sub(r"\d+", "#", error.strip().splitlines()[-1]) if error.strip() else ""
