"""Trainings of one seed in temporary folders, which time themselves."""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.machine import Measured, say
from rlanything import targets
from rlanything.config import Config, parse
from rlanything.core.errors import ConfigError
from rlanything.runs import timings
from rlanything.runs.layout import Layout
from rlanything.runs.parts import RunId
from rlanything.runs.seedrun import SeedRun

ARM = "full"
BASE = "processes"
FORMS: dict[str, tuple[int, str]] = {
    "inline": (0, "inline"),
    BASE: (0, "processes"),
    "one step off": (1, "processes"),
}
"""Name -> `train.staleness` and `executor.form`."""
WAITING = "benchmarks.staleness.waiting.WaitingGames"
HERE = Path(__file__).parents[2]


def measure(config: Config, root: Path, iterations: int, rounds: int, wait_s: float) -> dict[str, Measured]:
    """By form: seconds of an iteration, and how many times those of `BASE`. Raises `ConfigError`."""
    if not (Layout(root).manifest.is_file() and Layout(root).bootstrap.is_file()):
        raise ConfigError(f"{root}: data/ or models/ are missing (make them with `dvc repro bootstrap`)")
    spent: dict[str, list[dict[str, float]]] = {name: [] for name in FORMS}
    for number in range(rounds):
        for name in FORMS:
            say(f"round {number + 1} of {rounds}: {name}")
            spent[name].append(_train(_formed(config, name, iterations, wait_s), root))
    return {name: _row(rows, spent[BASE]) for name, rows in spent.items()}


def _row(rows: list[dict[str, float]], base: list[dict[str, float]]) -> Measured:
    """Medians of the rounds."""
    times = [row["seconds"] / other["seconds"] for row, other in zip(rows, base, strict=True)]
    shown = {name: round(statistics.median(row[name] for row in rows), 2) for name in rows[0]}
    return {**shown, "times": round(statistics.median(times), 2)}


def _train(config: Config, root: Path) -> dict[str, float]:
    """Seconds of an iteration, without panels, and of them: sampling beside it, and waiting for that."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in ("data", "models", "experiments"):
            (place / name).symlink_to((root if (root / name).exists() else HERE) / name)
        SeedRun(config, RunId(place, ARM, 0, place / "live"), lambda _: None, lambda: None).run()
        rows = timings.read(place / "live" / timings.FILE)[: config.train.iterations]
    found = {"seconds": sum(row["seconds"] for row in rows) - sum(_spent(rows, "panels"))}
    for name, phase in (("rollout", "rollout"), ("beside", "ahead"), ("waiting", "wait")):
        found[name] = sum(_spent(rows, phase))
    return {name: seconds / len(rows) for name, seconds in found.items()}


def _spent(rows: list[dict[str, Any]], phase: str) -> Iterator[float]:
    return (row["phases"][phase]["seconds"] for row in rows if phase in row["phases"])


def _formed(config: Config, name: str, iterations: int, wait_s: float) -> Config:
    """A short training in one of the forms, which measures no panels in between and tells no tracker."""
    data = config.model_dump(by_alias=True)
    staleness, form = FORMS[name]
    data["train"] |= {
        "iterations": iterations,
        "seeds": 1,
        "staleness": staleness,
        "loggers": {},
        "callbacks": {},
    }
    data["evaluate"] |= {"curve_tasks": 1, "every": iterations}
    data["executor"] |= {"form": form, "bundle": 8 if form == "processes" else 1}
    if wait_s:
        os.environ[targets.ALLOW] = WAITING.partition(".")[0]
        data["env"] |= {targets.TARGET: WAITING, "wait_s": wait_s}
    return parse(data)
