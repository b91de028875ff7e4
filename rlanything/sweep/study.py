"""The Optuna study behind a sweep: where it is stored, what samples it, its first trials, and one question at a time.

Trials are asked for and told, never optimised by Optuna itself, so that any process can finish any trial.
"""

from __future__ import annotations

import fcntl
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.trial import FrozenTrial, TrialState

from rlanything.config import ConfigError
from rlanything.sweep import space
from rlanything.sweep.declare import PAPER, Sweep, Value, sign
from rlanything.sweep.journal import Journal
from rlanything.sweep.pruning import pruner
from rlanything.sweep.sampler import PerTrial
from rlanything.sweep.space import SETS, outside

JOURNAL = "study.journal"
LABEL, DECLARED, FOLDER = "label", "declared", "folder"
"""Names of attributes: a trial's label; what the study was declared as; the name of the folder with its results."""
FIXED = {"space", "arms", "seeds", "objectives", "sampler", "startup", "seed"}
"""What cannot be changed once a study is there."""
LOCKED = "decisions"
"""The file in the study's folder that is locked by whoever decides who does what next."""


@dataclass(frozen=True)
class Start:
    """A trial that is queued when the study is made: what it sets, and its point where the space has one."""

    label: str
    sets: Mapping[str, Value]
    point: Mapping[str, Any] | None


def starts(sweep: Sweep, base: Mapping[str, Value]) -> list[Start]:
    """Trials 0 and 1 (the paper's point, the project's default), then a grid's points.

    Args:
        sweep: the declaration.
        base: what the trials' common configuration has, for every key of the space and of `PAPER`.
    """
    default = {key: base[key] for key in sweep.keys}
    paper = {**default, **{k: v for k, v in PAPER.items() if k in default or base[k] != v}}
    found = [_start(sweep, "paper", paper), _start(sweep, "default", default)]
    if sweep.sampler == "grid":
        taken = [start.sets for start in found]
        points = [Start("", space.values(sweep, point), point) for point in space.grid(sweep)]
        found += [start for start in points if start.sets not in taken]
    return found


def _start(sweep: Sweep, label: str, sets: Mapping[str, Value]) -> Start:
    return Start(label, sets, space.params(sweep, sets))


def _crashed(start: Start, trials: Sequence[FrozenTrial]) -> bool:
    """Whether the point was tried, and never with a result."""
    states = {t.state for t in trials if t.user_attrs.get(SETS) == start.sets}
    return states == {TrialState.FAIL}


def open_storage(url: str | None, folder: Path) -> BaseStorage:
    """The journal file in `folder`, or the database at `url`. Raises `ConfigError`, never with a password in it.

    A connection is tried before it is used, so that a server may be started again while workers run.
    """
    if url is None:
        return JournalStorage(Journal(folder / JOURNAL))
    arguments = {"connect_args": {"timeout": 60}} if url.startswith("sqlite") else {}
    try:
        return RDBStorage(url, engine_kwargs={"pool_pre_ping": True, **arguments})
    except ImportError as error:
        raise ConfigError(
            f"storage {hidden(url)}: {error}; install what it needs with pip install 'rlanything[sweep]'"
        ) from None
    except Exception as error:  # SQLAlchemy's and the driver's own, of many classes
        raise ConfigError(f"storage {hidden(url)}: {_reason(error, url)}") from None


def refused(url: str | None, error: Exception) -> str:
    """What an open storage refused, for people; without the password in its address."""
    cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
    where = "the study" if url is None else f"storage {hidden(url)}"
    return f"{where}: {_reason(cause, url or '')}; start the sweep again once it is back: it goes on"


def _reason(error: Exception, url: str) -> str:
    first = str(error).partition("\n")[0]
    return first.replace(url, hidden(url)) if url else first


def hidden(url: str) -> str:
    """The address without its password."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return "(not an address, e.g. sqlite:///sweep.db)"


class SweepStudy:
    """One study, shared by all workers. Every method that changes it may be called by any of them at any time."""

    def __init__(
        self, name: str, sweep: Sweep, base: Mapping[str, Value], folder: Path, url: str | None
    ) -> None:
        """Open the study, or make it. Raises `ConfigError` for one of that name that was declared differently."""
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.sweep = sweep
        self.folder = folder
        self.distributions = space.distributions(sweep)
        self._starts = starts(sweep, base)
        with self.lock():
            self.storage = open_storage(url, folder)
            self.study = self._open(self.storage)
            where = hidden(url) if url else str(folder)
            self._check(where)
            self._check_folder(where)
            self._queue()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Whoever holds it decides who does what next; a slow holder keeps it, a killed one loses it at once."""
        with (self.folder / LOCKED).open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _open(self, storage: BaseStorage) -> optuna.Study:
        ways = optuna.study.StudyDirection
        directions = [ways.MAXIMIZE if sign(metric) > 0 else ways.MINIMIZE for _, metric in self.sweep.goals]
        return optuna.create_study(
            study_name=self.name, storage=storage, directions=directions, load_if_exists=True,
            sampler=PerTrial(self.sweep, self.distributions), pruner=pruner(self.sweep.pruner),
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
                + "\nGive this sweep's file another name, or delete that study."
            )

    def _check_folder(self, where: str) -> None:
        """Raise `ConfigError` where a database is shared and the folder with the results is not."""
        mark, known = self.folder / "study.id", self.study.user_attrs.get(FOLDER)
        own = mark.read_text() if mark.is_file() else None
        if known is None:
            mark.write_text(own or uuid.uuid4().hex)
            self.study.set_user_attr(FOLDER, mark.read_text())
        elif own != known:
            raise ConfigError(
                f"study {self.name!r} in {where}: its trials lie in another folder than {self.folder}; all workers "
                "share one (--folder). If that folder is gone, delete the study"
            )

    def _queue(self) -> None:
        """Queue what is to be tried first; after a crash in the middle, the rest of it; and what of it crashed."""
        trials = self.trials()
        left = self._starts[len(trials) :]
        for start in [*(s for s in self._starts if _crashed(s, trials)), *left]:
            self.study.enqueue_trial(dict(start.point or {}), {LABEL: start.label, SETS: dict(start.sets)})

    @property
    def limit(self) -> int | None:
        """How many trials there will be; None: as many as the minutes allow."""
        if self.sweep.sampler == "grid":
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
        """A trial whose worker is gone; whatever was not drawn yet is drawn now."""
        return self._complete(self._trial(number))

    def _complete(self, trial: optuna.Trial) -> FrozenTrial:
        if SETS not in trial.user_attrs:
            self._draw(trial)
            trial.set_user_attr(SETS, space.values(self.sweep, trial.params))
        elif not outside(self.sweep, trial.user_attrs):
            self._draw(trial)
        return self.trials()[trial.number]

    def _draw(self, trial: optuna.Trial) -> None:
        for name, d in self.distributions.items():
            if isinstance(d, CategoricalDistribution):
                trial.suggest_categorical(name, d.choices)
            elif isinstance(d, IntDistribution):
                trial.suggest_int(name, d.low, d.high, step=d.step, log=d.log)
            elif isinstance(d, FloatDistribution):
                trial.suggest_float(name, d.low, d.high, step=d.step, log=d.log)

    def _trial(self, number: int) -> optuna.Trial:
        return optuna.Trial(self.study, self.trials()[number]._trial_id)

    def report(self, number: int, curve: Sequence[float]) -> bool:
        """Record the points of a trial's curve that are new; whether the pruner gives the trial up.

        Trials with a label are never given up: the others are compared with them.
        """
        trial = self._trial(number)
        known = self.trials()[number].intermediate_values
        new = [step for step in range(len(curve)) if step not in known]
        for step in new:
            trial.report(curve[step], step)
        return bool(new) and not trial.user_attrs.get(LABEL) and trial.should_prune()

    def note(self, number: int, **attributes: Any) -> None:
        """Store facts about a trial beside it, e.g. the error that ended it."""
        trial = self._trial(number)
        for name, value in attributes.items():
            trial.set_user_attr(name, value)

    def tell(self, number: int, found: Sequence[float] | None, state: TrialState) -> None:
        """Close a trial; telling one that is closed changes nothing."""
        self.study.tell(number, found, state, skip_if_finished=True)
