"""What the report reads: evaluation/<arm>.json and runs/<arm>/seed-<n>/metrics.jsonl, checked on the way in.

A file that cannot be read stops the report with `ReportError`, which names the file, the trouble and the command
that makes the file again. An arm that was not run is no trouble: it is left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

BASE = "base"
"""The frozen starting checkpoint, measured with each seed's evaluation randomness."""
ARMS = (BASE, "outcome", "policy", "policy_reward", "full")
"""The order in which arms are shown; others follow by name."""
EVALUATE = "dvc repro evaluate"
TRAIN = "dvc repro train"

Series = dict[int, float]
"""iteration -> value, in order of iterations; values that were not measured (missing, null, NaN) have no entry."""
Run = dict[str, Series]
"""Key of metrics.jsonl -> its series, for one seed of one arm."""
Curves = dict[str, dict[int, Run]]
"""arm -> seed -> run."""

Outcome = Annotated[int, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]


class ReportError(ValueError):
    """The report cannot be made; the message says which file is in the way and what to do."""


class Tally(BaseModel):
    """`hits` of `total` answers were right. On disk: [hits, total]."""

    hits: Count = 0
    total: Count = 0

    @model_validator(mode="before")
    @classmethod
    def _pair(cls, data: Any) -> Any:
        if isinstance(data, list):
            if len(data) != 2:
                raise ValueError("expected [hits, total]")
            return {"hits": data[0], "total": data[1]}
        return data

    @model_validator(mode="after")
    def _possible(self) -> Tally:
        if self.hits > self.total:
            raise ValueError(f"{self.hits} hits of {self.total}")
        return self


class StepTally(BaseModel):
    """The reward model against the oracle, over a task's good steps and over its bad ones."""

    good: Tally = Tally()
    bad: Tally = Tally()


class SeedEvaluation(BaseModel):
    """The final checkpoint of one seed on every panel; a panel that was not measured is empty.

    A reward model that votes has `rm_process` and `rm_outcome`, one that writes tests `ut` and `detect`.
    """

    model_config = ConfigDict(extra="ignore")

    in_domain: dict[str, list[Outcome | None]] = {}
    out_of_domain: dict[str, list[Outcome | None]] = {}
    rm_process: dict[str, StepTally] = {}
    rm_outcome: dict[str, Tally] = {}
    ut: dict[str, Tally] = {}
    detect: dict[str, Tally] = {}
    accepted_tasks: Count | None = None


class Evaluation(BaseModel):
    """One arm's evaluation file. `None` among outcomes: a repeat that says nothing (the environment failed)."""

    model_config = ConfigDict(extra="ignore")

    arm: str
    seeds: dict[int, SeedEvaluation] = Field(min_length=1)


def ordered(arms: Iterable[str]) -> list[str]:
    """Arms in the order of `ARMS`, others after them by name."""
    names = set(arms)
    return [a for a in ARMS if a in names] + sorted(names - set(ARMS))


def read_evaluations(root: Path, arms: Iterable[str]) -> dict[str, Evaluation]:
    """The evaluations found for `base` and `arms`. Raises `ReportError` for a bad file or when base is missing."""
    found = {}
    for arm in ordered([BASE, *arms]):
        path = root / "evaluation" / f"{arm}.json"
        if path.is_file():
            found[arm] = _evaluation(path, arm)
    if BASE not in found:
        raise ReportError(
            f"evaluation/{BASE}.json: no such file; every arm is compared with the base. Make it with `{EVALUATE}`"
        )
    return found


def _evaluation(path: Path, arm: str) -> Evaluation:
    name = f"evaluation/{path.name}"
    try:
        evaluation = Evaluation.model_validate(json.loads(path.read_text()))
    except ValidationError as error:
        raise ReportError(f"{name}: {_first(error)}; make it again with `{EVALUATE}`") from None
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReportError(f"{name}: not valid JSON ({error}); make it again with `{EVALUATE}`") from None
    if evaluation.arm != arm:
        raise ReportError(
            f"{name}: holds arm {evaluation.arm!r}, not {arm!r}; make it again with `{EVALUATE}`"
        )
    return evaluation


def _first(error: ValidationError) -> str:
    item = error.errors()[0]
    where = ".".join(str(part) for part in item["loc"]) or "file"
    more = error.error_count() - 1
    return f"{where}: {item['msg'].removeprefix('Value error, ')}" + (f" (and {more} more)" if more else "")


def read_curves(root: Path, arms: Iterable[str]) -> Curves:
    """Every runs/<arm>/seed-<n>/metrics.jsonl of `arms`; arms without one are left out. Raises `ReportError`."""
    curves: Curves = {}
    for arm in ordered(arms):
        folders = {_seed(f): f for f in (root / "runs" / arm).glob("seed-*") if _seed(f) is not None}
        runs = {
            seed: read_run(folders[seed] / "metrics.jsonl", root)
            for seed in sorted(s for s in folders if s is not None)
            if (folders[seed] / "metrics.jsonl").is_file()
        }
        if runs:
            curves[arm] = runs
    return curves


def _seed(folder: Path) -> int | None:
    number = folder.name.removeprefix("seed-")
    return int(number) if number.isdecimal() else None


def read_run(path: Path, root: Path) -> Run:
    """The series of one metrics.jsonl. A later line of the same iteration wins (a resumed run may repeat one)."""
    name = path.relative_to(root)
    lines: dict[int, Mapping[str, Any]] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if not line.strip():
            continue
        record = _line(line, f"{name}, line {number}")
        lines[record["iteration"]] = record
    return _series(lines)


def _line(line: bytes, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReportError(f"{where}: not valid JSON ({error}); make it again with `{TRAIN}`") from None
    if not isinstance(record, dict) or not isinstance(record.get("iteration"), int):
        raise ReportError(f"{where}: no iteration number; make it again with `{TRAIN}`")
    return record


def _series(lines: Mapping[int, Mapping[str, Any]]) -> Run:
    run: Run = {}
    for iteration in sorted(lines):
        for key, value in lines[iteration].items():
            measured = isinstance(value, (int, float)) and not math.isnan(value)
            if measured and key != "iteration":
                run.setdefault(key, {})[iteration] = float(value)
    return run
