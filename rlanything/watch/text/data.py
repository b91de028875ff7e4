"""A look as plain data, for programs: `rlanything watch --json`."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from rlanything.watch.places import Place
from rlanything.watch.seeds import Seed
from rlanything.watch.text.tables import decided
from rlanything.watch.view import View

CURVES = ("accuracy", "band_coverage", "mu", "accepted_total", "invalid_votes", "invalid_tests")
"""Metrics that are given for every iteration; of the others the last row has the values. Panels are given too."""


def data(view: View) -> dict[str, Any]:
    """Everything that the page shows, and more."""
    return {
        "at": view.at,
        "places": [
            {**_place(place), "left": asdict(whole)}
            for place, whole in zip(view.places, view.whole, strict=True)
        ],
        "warnings": [{"run": name, **asdict(one)} for name, one in view.warnings],
        "use": asdict(view.use),
    }


def _place(place: Place) -> dict[str, Any]:
    return {
        "name": place.name,
        "folder": str(place.root),
        "in_progress": place.in_progress,
        "problem": place.problem,
        "stages": [
            {
                "command": one.words,
                "state": one.state,
                "seconds": one.seconds,
                "spent": one.spent,
                "left": one.left,
            }
            for one in place.stages
        ],
        "runs": [_seed(seed) for seed in place.seeds],
    }


def _seed(seed: Seed) -> dict[str, Any]:
    keys = sorted({key for row in seed.rows for key in row if key in CURVES or key.startswith("panel/")})
    accepted, rejected = decided(seed.rows)
    return {
        "name": seed.name,
        "folder": str(seed.folder),
        "state": seed.state,
        "iterations": len(seed.rows),
        "last_iteration": seed.total,
        "share": seed.share,
        "left": seed.left(),
        "seconds_per_iteration": seed.pace,
        "now": None if seed.now is None else asdict(seed.now),
        "holder": None if seed.holder is None else asdict(seed.holder),
        "changed": seed.changed,
        "accepted": accepted,
        "rejected": rejected,
        "metrics": dict(seed.rows[-1]) if seed.rows else {},
        "curves": {key: [row.get(key) for row in seed.rows] for key in keys},
        "times": _finite(seed.laps[-1]) if seed.laps else {},
    }


def _finite(value: Any) -> Any:
    """The same with null for numbers that JSON lacks. Times are a stranger's, and are not read here."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
