"""The state of a sweep as all its workers see it: what is finished, what leads, what is left to do."""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from optuna.trial import FrozenTrial, TrialState

from rlanything.sweep.declare.metrics import sign
from rlanything.sweep.declare.parameters import Value
from rlanything.sweep.declare.space import SETS
from rlanything.sweep.declare.sweep import Sweep
from rlanything.sweep.study.study import LABEL, TRIALS, SweepStudy
from rlanything.sweep.trials.earlier import Earlier
from rlanything.sweep.trials.fresh import FreshRuns
from rlanything.sweep.trials.measure import Measured, measure

REPEATS = 20
"""After so many points in a row that were run before, the sampler is taken to have nothing new to offer."""


class Board:
    """Answers from the study and from the folders of its trials."""

    def __init__(self, study: SweepStudy, earlier: Earlier | None = None) -> None:
        self.study = study
        self.earlier = earlier
        self.sweep: Sweep = study.sweep
        self.folder = study.folder
        self.fresh = FreshRuns(study.folder / "fresh", study.sweep)
        self._measure = lru_cache(maxsize=None)(measure)

    def trial(self, number: int) -> Path:
        """A trial's folder."""
        return self.folder / TRIALS / f"{number:04d}"

    def results(self, number: int) -> Path:
        """The folder with a trial's results: that of an earlier trial where it was the same point."""
        return self.trial(self.source(number))

    def source(self, number: int) -> int:
        """The trial that was run for this one: itself, or an earlier one of the same point."""
        found: int = self.study.trials()[number].user_attrs.get("same_as", number)
        return found

    def sets(self, number: int) -> dict[str, Value]:
        """The keys that a trial sets."""
        found: dict[str, Value] = self.study.trials()[number].user_attrs[SETS]
        return found

    def complete(self) -> list[FrozenTrial]:
        """The trials with a result."""
        return [t for t in self.study.trials() if t.state == TrialState.COMPLETE]

    def same_point(self, number: int) -> FrozenTrial | None:
        """A trial that sets the same: a finished one, or else an earlier one that is running."""
        sets = self.sets(number)
        alike = [t for t in self.study.trials() if t.number != number and t.user_attrs.get(SETS) == sets]
        finished = [t for t in alike if t.state == TrialState.COMPLETE]
        running = [t for t in alike if t.state == TrialState.RUNNING and t.number < number]
        return next(iter(finished + running), None)

    def repeating(self) -> bool:
        """Whether the last `REPEATS` trials were all points that had been run before."""
        last = self.study.trials()[-REPEATS:]
        return len(last) == REPEATS and all("same_as" in t.user_attrs for t in last)

    def measured(self, number: int) -> Measured:
        """What a finished trial achieved."""
        return self._measure(self.results(number), self.sweep.arms, self.sweep.last_evaluations)

    def objectives(self, number: int) -> list[float]:
        """The means that the study is told. Raises `ValueError` for one that was not measured."""
        measured = measure(self.trial(number), self.sweep.arms, self.sweep.last_evaluations)
        found = [measured.estimate(goal) for goal in self.sweep.goals]
        missing = [name for name, e in zip(self.sweep.objectives, found, strict=True) if e is None]
        if missing:
            raise ValueError(f"not measured: {', '.join(missing)}")
        return [e.mean for e in found if e is not None]

    def best(self) -> FrozenTrial | None:
        """The trial with the best mean of the first objective; of equal ones the earliest."""
        way = sign(self.sweep.goals[0][1])
        return max(self.complete(), key=lambda t: (way * t.values[0], -t.number), default=None)

    def baselines(self) -> dict[str, int]:
        """Label -> number of the paper's setting and the project's default, where they have a result."""
        return {t.user_attrs[LABEL]: t.number for t in self.complete() if t.user_attrs.get(LABEL)}

    def candidates(self) -> list[int]:
        """The trials that are run again on fresh seeds: the winner and the baselines, each point once."""
        best = self.best()
        if best is None or self.sweep.confirm == 0:
            return []
        numbers = [best.number, *self.baselines().values()]
        return list(dict.fromkeys(self.source(n) for n in numbers))

    def to_confirm(self) -> list[int]:
        """Candidates still to be run on fresh seeds, once every trial is over; not those whose run crashed."""
        if not self.trials_over():
            return []
        runs = self.fresh
        return [n for n in self.candidates() if not runs.is_finished(n) and runs.error(n) is None]

    def trials_over(self) -> bool:
        """Whether no trial is running or will be started."""
        trials, limit = self.study.trials(), self.study.limit
        if self.sure_to_end():
            return False
        if self.minutes_over():
            return True
        if any(t.state == TrialState.WAITING for t in trials):
            return False
        return self.repeating() or (limit is not None and len(trials) >= limit)

    def sure_to_end(self) -> int:
        """How many trials are still to end even if the minutes are spent: those that run, and the baselines."""
        unfinished = [t for t in self.study.trials() if not t.state.is_finished()]
        return sum(t.state == TrialState.RUNNING or bool(t.user_attrs.get(LABEL)) for t in unfinished)

    def minutes_over(self, own_s: float = 0.0) -> bool:
        """Whether the budget of minutes is spent by the finished trials and `own_s` seconds of unfinished ones."""
        minutes = self.sweep.budget.minutes
        return minutes is not None and self.spent_s() + own_s > 60 * minutes

    def is_over(self) -> bool:
        """Whether nothing is left to do."""
        return self.trials_over() and not self.to_confirm()

    def spent_s(self) -> float:
        """Seconds that the finished trials took."""
        return sum(t.user_attrs.get("seconds", 0.0) for t in self.study.trials())

    def ended(self) -> set[int]:
        """The numbers of the trials that have ended, in whatever state."""
        return {t.number for t in self.study.trials() if t.state.is_finished()}

    def last_ended(self, count: int, before: Set[int]) -> Sequence[FrozenTrial]:
        """The last `count` trials to end, in the order in which they did, without those in `before`."""
        ended = [t for t in self.study.trials() if t.state.is_finished() and t.number not in before]
        return sorted(ended, key=lambda t: t.datetime_complete or datetime.min)[-count:]
