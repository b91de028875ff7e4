"""The Optuna study of a sweep, shared by all workers: its first trials, and one question at a time.

Trials are asked for and told, never optimised by Optuna itself, so that any process can finish any trial.
"""

from __future__ import annotations

import fcntl
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from rlanything.core.errors import ConfigError
from rlanything.files.atomic import write_text
from rlanything.files.reader import read_text
from rlanything.sweep.declare import space
from rlanything.sweep.declare.metrics import sign
from rlanything.sweep.declare.parameters import Value
from rlanything.sweep.declare.samplers import SAMPLERS
from rlanything.sweep.declare.space import SETS, outside
from rlanything.sweep.declare.starts import Start, starts
from rlanything.sweep.declare.sweep import Sweep
from rlanything.sweep.study.pruning import make_pruner
from rlanything.sweep.study.sampler import PerTrialSampler
from rlanything.sweep.study.storage import open_storage, without_password

LABEL, DECLARED, FOLDER = "label", "declared", "folder"
"""Attributes: a trial's label; the declaration of the study; the identity of the folder that holds its trials."""
FIXED = {"space", "arms", "seeds", "objectives", "last_evaluations", "sampler", "startup", "seed"}
"""Parts of the declaration that cannot change once the study exists."""
TRIALS = "trials"
"""The folder of the trials, in the study's folder."""
LOCK = "decisions"
"""The file in the study's folder that a worker locks while it decides what to do next."""


class SweepStudy:
    """One study. Any worker may call any method at any time."""

    def __init__(
        self,
        name: str,
        sweep: Sweep,
        base: Mapping[str, Value],
        folder: Path,
        url: str | None,
        points: Sequence[Start] = (),
    ) -> None:
        """Open the study, or make it. Raises `ConfigError` for one of that name with another declaration.

        points: those that are tried first, after the baselines and as many as the budget has; a grid has its own.
        """
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.sweep = sweep
        self.folder = folder
        self.distributions = space.distributions(sweep)
        self._starts = starts(sweep, base)
        if not SAMPLERS[sweep.sampler].every_point:
            known = [start.sets for start in self._starts]
            new = [point for point in points if point.sets not in known]
            self._starts = [*self._starts, *new][: sweep.budget.trials]
        with self.lock():
            self.storage = open_storage(url, folder)
            self.study = self._open(self.storage)
            where = without_password(url) if url else str(folder)
            self._check(where)
            self._check_folder(where)
            self._queue()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Held while a worker decides what to do next. The kernel releases it when the worker is killed."""
        with (self.folder / LOCK).open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _open(self, storage: BaseStorage) -> optuna.Study:
        ways = optuna.study.StudyDirection
        directions = [ways.MAXIMIZE if sign(metric) > 0 else ways.MINIMIZE for _, metric in self.sweep.goals]
        return optuna.create_study(
            study_name=self.name, storage=storage, directions=directions, load_if_exists=True,
            sampler=PerTrialSampler(self.sweep, self.distributions), pruner=make_pruner(self.sweep.pruner),
        )  # fmt: skip

    def _check(self, where: str) -> None:
        declared = self.sweep.model_dump(mode="json", include=FIXED)
        found = self.study.user_attrs.get(DECLARED)
        if found is None:
            self.study.set_user_attr(DECLARED, declared)
        elif found != declared:
            changed = [
                f"  {k}: there {found.get(k)}, here {v}" for k, v in declared.items() if found.get(k, v) != v
            ]
            raise ConfigError(
                f"study {self.name!r} in {where} was declared differently:\n"
                + "\n".join(changed)
                + "\nGive this sweep's file another name, or delete that study and the folder with its trials, "
                + f"{self.folder}."
            )

    def _check_folder(self, where: str) -> None:
        """Raise `ConfigError` where the folder holds the trials of another study, or this one's lie elsewhere."""
        mark, known = self.folder / "study.id", self.study.user_attrs.get(FOLDER)
        own = read_text(mark) if mark.is_file() else None
        if known is None:
            if (self.folder / TRIALS).exists():  # their numbers would be taken for this study's
                raise ConfigError(
                    f"study {self.name!r} in {where} is new, but {self.folder} holds the trials of another study; "
                    "remove it"
                )
            own = own or uuid.uuid4().hex  # of a start that was killed before it had a trial
            write_text(mark, own)
            self.study.set_user_attr(FOLDER, own)
        elif own != known:
            raise ConfigError(
                f"study {self.name!r} in {where}: its trials lie in another folder than {self.folder}; all workers "
                "share one (--folder). If that folder is gone, delete the study"
            )

    def _queue(self) -> None:
        """Queue the first trials that are not queued yet, and again those that crashed."""
        trials = self.trials()
        left = self._starts[len(trials) :]
        for start in [*(s for s in self._starts if _crashed(s, trials)), *left]:
            self.study.enqueue_trial(dict(start.point or {}), {LABEL: start.label, SETS: dict(start.sets)})

    @property
    def limit(self) -> int | None:
        """How many trials there will be; None: as many as the minutes allow."""
        if SAMPLERS[self.sweep.sampler].every_point:
            return len(self._starts)
        return self.sweep.budget.trials

    def trials(self) -> list[FrozenTrial]:
        """All trials, in the order of their numbers."""
        return self.study.get_trials(deepcopy=False)

    def ask(self, *, labelled: bool = False) -> FrozenTrial | None:
        """The next trial, or None when the budget has no more. Call it with the lock held.

        Args:
            labelled: only the paper's point and the default, which are run whatever the budget.
        """
        trials = self.trials()
        waiting = [t for t in trials if t.state == TrialState.WAITING]
        queued = [t for t in waiting if t.user_attrs.get(LABEL)] if labelled else waiting
        if queued:
            self.storage.set_trial_state_values(queued[0]._trial_id, TrialState.RUNNING)
            return self.resume(queued[0].number)
        if labelled or (self.limit is not None and len(trials) >= self.limit):
            return None
        return self._complete(self.study.ask())

    def resume(self, number: int) -> FrozenTrial:
        """A trial whose worker is gone; parameters that were not drawn yet are drawn now."""
        return self._complete(self._trial(number))

    def _complete(self, trial: optuna.Trial) -> FrozenTrial:
        if SETS not in trial.user_attrs:
            self._draw(trial)
            trial.set_user_attr(SETS, space.values(self.sweep, trial.params))
        elif not outside(self.sweep, trial.user_attrs):
            self._draw(trial)
        return self.trials()[trial.number]

    def _draw(self, trial: optuna.Trial) -> None:
        for name, distribution in self.distributions.items():
            trial._suggest(name, distribution)  # public: one method for each class of distribution

    def _trial(self, number: int) -> optuna.Trial:
        return optuna.Trial(self.study, self.trials()[number]._trial_id)

    def report(self, number: int, curve: Sequence[float | None]) -> bool:
        """Record the new points of a trial's curve, but for None; returns whether the pruner gives the trial up.

        Trials with a label never are: the others are compared with them.
        """
        trial = self._trial(number)
        known = self.trials()[number].intermediate_values
        new = {step: value for step, value in enumerate(curve) if value is not None and step not in known}
        for step, value in new.items():
            trial.report(value, step)
        return bool(new) and not trial.user_attrs.get(LABEL) and trial.should_prune()

    def note(self, number: int, **attributes: Any) -> None:
        """Store attributes of a trial, e.g. the error that ended it."""
        trial = self._trial(number)
        for name, value in attributes.items():
            trial.set_user_attr(name, value)

    def tell(self, number: int, found: Sequence[float] | None, state: TrialState) -> None:
        """End a trial; one that has ended stays as it is."""
        self.study.tell(number, found, state, skip_if_finished=True)


def _crashed(start: Start, trials: Sequence[FrozenTrial]) -> bool:
    """Whether the point was tried, and never with a result."""
    states = {t.state for t in trials if t.user_attrs.get(SETS) == start.sets}
    return states == {TrialState.FAIL}
