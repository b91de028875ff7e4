"""Reads evaluation/<arm>.json into panels of hits and totals, checked on the way in.

A file that cannot be read stops the report with `ReportError`, which names the file, the trouble and the command
that makes the file again. An arm that was not run is no error: it is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from rlanything.config import BASE, BASE_COOLED
from rlanything.core.errors import UserError
from rlanything.core.records.forms import first_error
from rlanything.core.splits import POLICY
from rlanything.files.reader import FileError, TooLargeError, read_json
from rlanything.report.results.arms import ordered
from rlanything.report.results.evidence import Channels
from rlanything.report.results.metrics import DECLARED, Metric, named
from rlanything.report.results.statistics import Panel

EVALUATE = "dvc repro evaluate"
DETAILS = ("episode_steps", "success_within", "solvable", "labels", "crashed")
"""Keys beside the metrics (`details`); with several panels `labels/<panel>`."""

Panels = dict[str, dict[str, Panel]]
"""arm -> name of a metric -> panel; a metric that was not measured is absent."""


class ReportError(UserError):
    """The report cannot be made; the message says which file is in the way and what to do."""


class _Damaged(ReportError):
    """What is wrong with the results in an evaluation file; `read_evaluation` says in which."""


class Evaluation(BaseModel):
    """One arm's evaluation file: seed -> name of a metric -> its results, in the form of its evidence."""

    arm: str
    seeds: dict[int, dict[str, Any]] = Field(min_length=1)


class Cooled(BaseModel):
    """What the file of the cooled base holds besides. shares: temperature -> success on the tasks of the search."""

    temperature: float
    shares: dict[float, float] = {}


def read_evaluations(root: Path, arms: Iterable[str]) -> Panels:
    """The panels found for `base`, and for `arms` and other controls.

    Raises `ReportError` for a bad file or when base is missing.
    """
    found = {}
    for arm in ordered([BASE, *arms]):
        path = root / "evaluation" / f"{arm}.json"
        if path.is_file():
            found[arm] = read_evaluation(path, arm)
    if BASE not in found:
        raise ReportError(
            f"evaluation/{BASE}.json: no such file; every arm is compared with the base. Make it with `{EVALUATE}`"
        )
    return found


def read_evaluation(path: Path, arm: str, advice: str = "") -> dict[str, Panel]:
    """Name of a metric -> panel, for every metric that the file holds. Raises `ReportError` (advice: as `broken`)."""
    try:
        evaluation = Evaluation.model_validate(read_json(path))
        if evaluation.arm != arm:
            raise _Damaged(f"holds arm {evaluation.arm!r}, not {arm!r}")
        metrics = _metrics(evaluation.seeds)
        panels = {metric.name: _panel(metric, evaluation.seeds) for metric in metrics}
    except ValidationError as error:
        raise broken(path, first_error(error), advice) from None
    except TooLargeError as error:
        raise ReportError(str(error)) from None
    except FileError as error:
        raise broken(path, f"not valid JSON ({error})", advice) from None
    except _Damaged as error:
        raise broken(path, str(error), advice) from None
    return {name: panel for name, panel in panels.items() if panel is not None}


def read_cooled(root: Path) -> Cooled:
    """At which temperature the untrained policy is best, and how that was found. Raises `ReportError`."""
    path = root / "evaluation" / f"{BASE_COOLED}.json"
    try:
        return Cooled.model_validate(read_json(path))
    except ValidationError as error:
        raise broken(path, first_error(error)) from None
    except TooLargeError as error:
        raise ReportError(str(error)) from None
    except FileError as error:
        raise broken(path, f"not valid JSON ({error})") from None


def _metrics(seeds: Mapping[int, Mapping[str, Any]]) -> list[Metric]:
    """The metrics of which results are stored, in the order of the tables. Two may be computed from the same ones."""
    found: list[Metric] = []
    for key in sorted({key for results in seeds.values() for key in results}):
        base, slash, panel = key.partition("/")
        computed = [metric.name for metric in DECLARED.values() if metric.stored == base]
        if base not in DETAILS:
            found += [named(name + slash + panel) for name in computed or [base]]
    order = [POLICY, *DECLARED]
    return sorted(found, key=lambda metric: order.index(metric.kind))


def _panel(metric: Metric, seeds: Mapping[int, Mapping[str, Any]]) -> Panel | None:
    """One metric of every seed that has it, or None."""
    cells = {seed: _channels(metric, seeds[seed], f"seeds.{seed}") for seed in sorted(seeds)}
    return panel_of(metric, cells)


def panel_of(metric: Metric, cells: Mapping[int, Mapping[str, Channels]]) -> Panel | None:
    """The panel of seed -> task -> channels, or None when nothing was measured."""
    cells = {seed: found for seed, found in cells.items() if found}
    tasks = sorted({task for found in cells.values() for task in found})
    if not tasks:
        return None
    width = len(next(iter(next(iter(cells.values())).values())))
    empty: Channels = ((0.0, 0.0),) * width
    table = np.array(
        [[found.get(task, empty) for task in tasks] for found in cells.values()], dtype=np.float64
    )
    hits, totals = np.moveaxis(table, 3, 0).transpose(0, 3, 1, 2)
    limits = (0.0, 1.0 if metric.is_share else float("inf"))
    return Panel(tuple(cells), tuple(tasks), hits, totals, limits)


def _channels(metric: Metric, results: Mapping[str, Any], where: str) -> dict[str, Channels]:
    if metric.stored not in results:
        return {}
    try:
        stored = TypeAdapter(metric.evidence.stored).validate_python(results[metric.stored])
    except ValidationError as error:
        raise _Damaged(first_error(error, where, metric.stored)) from None
    return metric.evidence.channels(stored)


def broken(path: Path, trouble: str, advice: str = "") -> ReportError:
    """What to raise for an evaluation file with this trouble.

    advice: what to do about a file that is not the project's own evaluation; the message then names the whole path.
    """
    if advice:
        return ReportError(f"{path}: {trouble}; {advice}")
    return ReportError(f"evaluation/{path.name}: {trouble}; make it again with `{EVALUATE}`")
