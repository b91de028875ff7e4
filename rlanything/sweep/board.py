"""The state of a sweep as all its workers see it: what is finished, what leads, what is still to do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from optuna.trial import FrozenTrial, TrialState

from rlanything.report.words import NONE
from rlanything.sweep.declare import Sweep, Value, sign
from rlanything.sweep.objective import Measured, measure
from rlanything.sweep.space import SETS
from rlanything.sweep.study import LABEL, SweepStudy
from rlanything.sweep.words import number as written

REPEATS = 20
"""So many points in a row that were run before: the sampler has nothing new to offer."""
ERROR = "error.txt"
"""Beside a run on fresh seeds that crashed: why. (Optuna takes no more notes about a trial that is finished.)"""


class Board:
    """Answers from the study and from the folders of its trials."""

    def __init__(self, study: SweepStudy) -> None:
        self.study = study
        self.sweep: Sweep = study.sweep
        self.folder = study.folder
        self._read = lru_cache(maxsize=None)(measure)

    def trial(self, number: int) -> Path:
        """A trial's folder."""
        return self.folder / "trials" / f"{number:04d}"

    def fresh(self, number: int) -> Path:
        """The folder in which a trial is run again on fresh seeds."""
        return self.folder / "fresh" / f"{number:04d}"

    def results(self, number: int) -> Path:
        """The folder with a trial's results: another one's where that was the same point."""
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

    def twin(self, number: int) -> FrozenTrial | None:
        """A trial that sets the very same: a finished one, or else an earlier one that is running."""
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
        return self._read(self.results(number), tuple(self.sweep.arms))

    def measured_fresh(self, number: int) -> Measured | None:
        """The same on its fresh seeds, or None where it was not run on any."""
        if not self._confirmed(number):
            return None
        return self._read(self.fresh(number), tuple(self.sweep.arms)).at(self._fresh_seeds)

    def objectives(self, number: int) -> list[float]:
        """The means that the study is told. Raises `ValueError` for one that was not measured."""
        measured = measure(self.trial(number), tuple(self.sweep.arms))
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
        """Label -> number of the paper's point and the project's default, where they have a result."""
        return {t.user_attrs[LABEL]: t.number for t in self.complete() if t.user_attrs.get(LABEL)}

    def candidates(self) -> list[int]:
        """What is run again on fresh seeds: the winner and the baselines, each point once."""
        best = self.best()
        if best is None or self.sweep.confirm == 0:
            return []
        numbers = [best.number, *self.baselines().values()]
        return list(dict.fromkeys(self.source(n) for n in numbers))

    def to_confirm(self) -> list[int]:
        """Candidates without their run on fresh seeds, once every trial is over; not those whose run crashed."""
        if not self.trials_over():
            return []
        return [n for n in self.candidates() if not self._confirmed(n) and self.fresh_error(n) is None]

    @property
    def _fresh_seeds(self) -> range:
        return range(self.sweep.seeds, self.sweep.seeds + self.sweep.confirm)

    def _confirmed(self, number: int) -> bool:
        return self.sweep.confirm > 0 and not self._unconfirmed(number)

    def _unconfirmed(self, number: int) -> list[Path]:
        """The evaluations of a trial that lack one of the fresh seeds, e.g. since `confirm` was raised."""
        files = [self.fresh(number) / "evaluation" / f"{arm}.json" for arm in self.sweep.arms]
        return [f for f in files if not set(self._fresh_seeds) <= _evaluated(f)]

    def reopen_fresh(self, number: int) -> None:
        """Where a trial's evaluation lacks a fresh seed, remove it and put its runs aside, in `earlier`."""
        for file in self._unconfirmed(number):
            runs = self.fresh(number) / "runs" / file.stem
            if file.is_file() and runs.is_dir():
                aside = self.earlier(number) / "runs" / file.stem
                shutil.rmtree(aside, ignore_errors=True)
                aside.parent.mkdir(parents=True, exist_ok=True)
                runs.rename(aside)
            file.unlink(missing_ok=True)

    def earlier(self, number: int) -> Path:
        """Where runs on fresh seeds lie until more seeds are trained beside them."""
        return self.fresh(number) / "earlier"

    def fresh_error(self, number: int) -> str | None:
        """What ended a trial's run on fresh seeds, or None where nothing did."""
        file = self.fresh(number) / ERROR
        return file.read_text() if file.is_file() else None

    def retry_fresh(self) -> None:
        """Forget the crashes on fresh seeds, so that those runs are tried again."""
        for file in (self.folder / "fresh").glob(f"*/{ERROR}"):
            file.unlink(missing_ok=True)

    def trials_over(self) -> bool:
        """Whether no trial is running or will be started."""
        trials, limit = self.study.trials(), self.study.limit
        if self._certain():
            return False
        if self.minutes_over():
            return True
        if any(t.state == TrialState.WAITING for t in trials):
            return False
        return self.repeating() or (limit is not None and len(trials) >= limit)

    def _certain(self) -> int:
        """How many trials are still to end whatever the minutes say: those that run, and the baselines."""
        open_ = [t for t in self.study.trials() if not t.state.is_finished()]
        return sum(t.state == TrialState.RUNNING or bool(t.user_attrs.get(LABEL)) for t in open_)

    def minutes_over(self, own_s: float = 0.0) -> bool:
        """Whether the budget of minutes is spent by the finished trials and `own_s` seconds of unfinished ones."""
        minutes = self.sweep.budget.minutes
        return minutes is not None and self.spent_s() + own_s > 60 * minutes

    def over(self) -> bool:
        """Whether nothing is left to do."""
        return self.trials_over() and not self.to_confirm()

    def spent_s(self) -> float:
        """Seconds that the finished trials took."""
        return sum(t.user_attrs.get("seconds", 0.0) for t in self.study.trials())

    def ended(self) -> set[int]:
        """The numbers of the trials that are over, however they ended."""
        return {t.number for t in self.study.trials() if t.state.is_finished()}

    def last_ended(self, count: int, before: Set[int]) -> Sequence[FrozenTrial]:
        """The last `count` trials to end, in the order in which they did, without those in `before`."""
        ended = [t for t in self.study.trials() if t.state.is_finished() and t.number not in before]
        return sorted(ended, key=lambda t: t.datetime_complete or datetime.min)[-count:]

    def sentence(self, number: int, *, fresh: bool = False) -> str:
        """The objectives of a finished trial with their intervals."""
        measured = self.measured_fresh(number) if fresh else self.measured(number)
        parts = []
        for name, goal in zip(self.sweep.objectives, self.sweep.goals, strict=True):
            found = None if measured is None else measured.estimate(goal)
            parts.append(f"{name} {NONE if found is None else written(found, goal[1])}")
        return ("fresh seeds: " if fresh else "") + ", ".join(parts)

    def status(self, running: Mapping[int, float], slots: int) -> str:
        """One line: how far, the best so far, what runs, how long still."""
        trials = self.study.trials()
        count = {state: sum(t.state == state for t in trials) for state in TrialState}
        ended = count[TrialState.COMPLETE] + count[TrialState.PRUNED] + count[TrialState.FAIL]
        of = f"/{self.study.limit}" if self.study.limit is not None else ""
        line = f"{ended}{of} trials"
        extra = [
            f"{count[s]} {w}"
            for s, w in ((TrialState.PRUNED, "pruned"), (TrialState.FAIL, "crashed"))
            if count[s]
        ]
        line += f" ({', '.join(extra)})" if extra else ""
        best = self.best()
        if best is not None:
            line += f", best {best.number}: {self.sentence(best.number)}"
        if running:
            line += ", running " + " ".join(f"{n} ({share:.0%})" for n, share in running.items())
        return line + self._left(running, slots)

    def _left(self, running: Mapping[int, float], slots: int) -> str:
        """The time that is left, from what finished trials took; it counts the fresh runs as a trial each."""
        took = [t.user_attrs["seconds"] for t in self.complete() if t.user_attrs.get("seconds")]
        if not took or self.over():
            return ""
        each = sum(took) / len(took)
        again = 3 if not self.trials_over() else len(self.to_confirm())
        fresh = again * each * self.sweep.confirm / self.sweep.seeds
        trials = max(0.0, self._for_trials_s(each) - sum(running.values()) * each)
        return f", about {round((trials + fresh) / slots / 60)} min left"

    def _for_trials_s(self, each: float) -> float:
        """Seconds of work that the budget still has for trials of `each` seconds, begun ones included."""
        limit, minutes = self.study.limit, self.sweep.budget.minutes
        trials = float("inf") if limit is None else (limit - len(self.ended())) * each
        found = min(trials, float("inf") if minutes is None else 60 * minutes - self.spent_s())
        return max(found, self._certain() * each)


def _evaluated(file: Path) -> frozenset[int]:
    """The seeds in an evaluation; none where there is no such file."""
    if not file.is_file():
        return frozenset()
    return _seeds(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _seeds(file: Path, changed: int) -> frozenset[int]:
    """`changed`: the file's time stamp, since the board is asked twice a second."""
    return frozenset(int(seed) for seed in json.loads(file.read_text())["seeds"])
