"""The study of the same sweep with another number of seeds: its points are tried again, and its runs are taken over.

A study's number of seeds is part of its key, because a trial that has ended keeps its values. So another number begins
another study. A seed's run does not depend on how many there are: what the earlier study trained is copied, and only
the seeds that it lacks are trained.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from rlanything.core.printable import counted
from rlanything.files.reader import FileError
from rlanything.sweep.declare.parameters import Value
from rlanything.sweep.declare.space import SETS, outside
from rlanything.sweep.declare.starts import Start
from rlanything.sweep.declare.sweep import Sweep
from rlanything.sweep.study.storage import JOURNAL, open_storage
from rlanything.sweep.study.study import DECLARED, TRIALS
from rlanything.sweep.trials.key import FILE, Key, studies


@dataclass(frozen=True)
class Earlier:
    """A study that differs in the number of seeds alone. `trials`: those with a result of their own."""

    folder: Path
    seeds: int
    space: Mapping[str, Any]
    trials: Sequence[FrozenTrial]

    def runs(self, sets: Mapping[str, Value]) -> list[Path]:
        """The folders with runs of the point: that of the trial, and of the trial again on fresh seeds."""
        numbers = [f"{t.number:04d}" for t in self.trials if t.user_attrs[SETS] == sets]
        return [self.folder / kind / number for number in numbers for kind in (TRIALS, "fresh")]

    def announcement(self, points: Sequence[Start]) -> str:
        """What is printed when a sweep takes over from it. points: those of it that are tried first."""
        first = "its points with a result are tried first. " if points else ""
        return (
            f"{self.folder} has trials of {counted(self.seeds, 'seed')}: {first}Where a point is the same, its runs "
            "are taken over, and only the seeds that it lacks are trained"
        )

    def points(self, sweep: Sweep) -> list[Start]:
        """The points that its sampler drew, to be tried first; none where the space is another one."""
        if self.space != sweep.model_dump(mode="json", include={"space"})["space"]:
            return []
        drawn = [t for t in self.trials if not outside(sweep, t.user_attrs)]
        return [Start("", t.user_attrs[SETS], t.params) for t in drawn]


def with_other_seeds(folder: Path, name: str, key: Key, url: str | None) -> Earlier | None:
    """The latest study in `folder` of this name whose key differs in the number of seeds alone, if it can be read."""
    for place in studies(folder, name, key):
        try:
            there = Key.read(place / FILE)
        except FileError:
            continue
        if _without_seeds(there) == _without_seeds(key):
            return _read(place, int(there.config["train"]["seeds"]), url)
    return None


def _without_seeds(key: Key) -> Key:
    config: dict[str, Any] = copy.deepcopy(dict(key.config))
    config.get("train", {}).pop("seeds", None)
    return replace(key, config=config)


def _read(place: Path, seeds: int, url: str | None) -> Earlier | None:
    """None where the study is in another storage than this one's."""
    if url is None and not (place / JOURNAL).is_file():
        return None
    try:
        study = optuna.load_study(study_name=place.name, storage=open_storage(url, place))
    except KeyError:
        return None
    own = [t for t in study.trials if t.state == TrialState.COMPLETE and "same_as" not in t.user_attrs]
    return Earlier(place, seeds, study.user_attrs.get(DECLARED, {}).get("space", {}), tuple(own))
