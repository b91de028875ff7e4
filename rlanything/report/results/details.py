"""What evaluation/<arm>.json holds besides the metrics: success by steps, labels, solved tasks, crashed episodes.

Files of older versions hold none of it; then nothing of it is shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError, model_validator

from rlanything.config import BASE
from rlanything.core.records.forms import first_error
from rlanything.files.reader import read_json
from rlanything.report.results.arms import ordered
from rlanything.report.results.evaluations import broken, panel_of
from rlanything.report.results.evidence import Count, Outcome, StepHits
from rlanything.report.results.metrics import DECLARED
from rlanything.report.results.statistics import Estimate, estimate

Share = Annotated[float, Field(ge=0, le=1)]


class Judged(BaseModel):
    """One seed's results against the labels of one judge."""

    rm_process: dict[str, StepHits]
    left_out: dict[str, Count]


ByArm = Mapping[str, Mapping[int, Mapping[str, Judged]]]
"""arm -> seed -> judge -> results against its labels, on one panel."""


class Details(BaseModel):
    """One seed's results beside the metrics. labels: panel -> judge; '' is the only panel."""

    success_within: dict[str, list[Share | None]] = {}
    labels: dict[str, dict[str, Judged]] = {}
    solvable: dict[str, list[Outcome]] = {}
    crashed: dict[str, Count] = {}

    @model_validator(mode="before")
    @classmethod
    def _gather_labels(cls, data: Any) -> Any:
        """`labels`, and with several panels `labels/<panel>`."""
        if not isinstance(data, dict):
            return data
        keys = [key for key in data if key.partition("/")[0] == "labels"]
        rest = {key: value for key, value in data.items() if key not in keys}
        return rest | ({"labels": {key.partition("/")[2]: data[key] for key in keys}} if keys else {})


class Evaluation(BaseModel):
    """One arm's evaluation file; what else it holds is read by `evaluations`."""

    seeds: dict[int, Details]


@dataclass(frozen=True)
class Solved:
    """How many of an arm's accepted tasks, over all seeds, the solver tried, and solved in at least one of its tries.

    untried: those that it has no demonstration of, or on which every try crashed. single: the mean over tasks of the
    share of tries that solve one; it says nothing of an expert, which stops at its first success.
    """

    tasks: int
    solved: int
    untried: int
    single: float


@dataclass(frozen=True)
class Judges:
    """One panel against the labels of each judge. found: judge -> arm -> metric. left_out: judge -> why -> steps."""

    found: Mapping[str, Mapping[str, Mapping[str, Estimate]]]
    left_out: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Extras:
    """The details of every arm.

    within: arm -> panel -> success at limits of 1, 2, ... steps, for each seed. judged: panel -> what its judges
    say; '' is the only panel. solved: arm -> accepted tasks. crashed: arm -> panel -> episodes of all seeds that were
    left out; an arm without any is absent.
    """

    within: Mapping[str, Mapping[str, list[list[float]]]]
    judged: Mapping[str, Judges]
    solved: Mapping[str, Solved]
    crashed: Mapping[str, Mapping[str, int]]


def read_extras(root: Path, arms: Iterable[str], advice: str = "") -> Extras:
    """The details of `base` and `arms`; an arm that was not evaluated is left out.

    Raises `ReportError` (advice: as `broken`).
    """
    found = {arm: seeds for arm in ordered([BASE, *arms]) if (seeds := _seeds(root, arm, advice))}
    every = [details for seeds in found.values() for details in seeds.values()]
    panels = dict.fromkeys(panel for details in every for panel in details.labels)
    return Extras(
        {arm: within for arm, seeds in found.items() if (within := _within(seeds))},
        {panel: _judges(panel, found) for panel in panels},
        {arm: solved for arm, seeds in found.items() if (solved := _solved(seeds)).tasks},
        {arm: crashed for arm, seeds in found.items() if (crashed := _crashed(seeds))},
    )


def _seeds(root: Path, arm: str, advice: str) -> Mapping[int, Details]:
    path = root / "evaluation" / f"{arm}.json"
    if not path.is_file():
        return {}
    try:
        return Evaluation.model_validate(read_json(path)).seeds
    except ValidationError as error:
        raise broken(path, first_error(error), advice) from None


def _within(seeds: Mapping[int, Details]) -> dict[str, list[list[float]]]:
    """Panel -> the curve of each seed; one that is not measured at every limit is left out."""
    curves: dict[str, list[list[float]]] = {}
    for details in seeds.values():
        for panel, rates in details.success_within.items():
            measured = [rate for rate in rates if rate is not None]
            if len(measured) == len(rates):
                curves.setdefault(panel, []).append(measured)
    return {panel: found for panel, found in curves.items() if len({len(curve) for curve in found}) == 1}


def _judges(panel: str, found: Mapping[str, Mapping[int, Details]]) -> Judges:
    """Everything about the labels of one panel."""
    by_arm = {
        arm: {seed: d.labels[panel] for seed, d in seeds.items() if panel in d.labels}
        for arm, seeds in found.items()
    }
    judges = dict.fromkeys(
        judge for seeds in by_arm.values() for labels in seeds.values() for judge in labels
    )
    return Judges(
        {judge: _judged(judge, by_arm) for judge in judges},
        {judge: _left_out(judge, by_arm) for judge in judges},
    )


def _judged(judge: str, by_arm: ByArm) -> dict[str, dict[str, Estimate]]:
    """arm -> metric -> estimate, against the labels of one judge."""
    return {arm: found for arm, seeds in by_arm.items() if (found := _estimates(judge, seeds))}


def _estimates(judge: str, seeds: Mapping[int, Mapping[str, Judged]]) -> dict[str, Estimate]:
    estimates = {}
    for metric in DECLARED.values():
        if metric.stored != "rm_process":
            continue
        cells = {
            seed: metric.evidence.channels(labels[judge].rm_process)
            for seed, labels in seeds.items()
            if judge in labels
        }
        value = estimate(panel_of(metric, cells))
        if value is not None:
            estimates[metric.name] = value
    return estimates


def _left_out(judge: str, by_arm: ByArm) -> Mapping[str, int]:
    """Steps with and without a label. They are the panel's, so every arm and seed says the same."""
    return next(
        labels[judge].left_out for seeds in by_arm.values() for labels in seeds.values() if judge in labels
    )


def _crashed(seeds: Mapping[int, Details]) -> dict[str, int]:
    """Panel -> episodes of all seeds that crashed or timed out."""
    total: Counter[str] = Counter()
    for details in seeds.values():
        total.update(details.crashed)
    return {panel: count for panel, count in total.items() if count}


def _solved(seeds: Mapping[int, Details]) -> Solved:
    tries = [outcomes for details in seeds.values() for outcomes in details.solvable.values()]
    tried = [outcomes for outcomes in tries if outcomes]
    single = fmean(map(fmean, tried)) if tried else 0.0
    return Solved(len(tried), sum(any(outcomes) for outcomes in tried), len(tries) - len(tried), single)
