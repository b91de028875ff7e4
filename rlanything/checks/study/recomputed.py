"""Whether the results of a published study follow from its own evaluations: they are computed again, and compared."""

from __future__ import annotations

from dataclasses import replace
from math import isclose
from pathlib import Path
from typing import Any

from rlanything.checks.study.document import to_json
from rlanything.checks.study.earlier import RESULTS
from rlanything.checks.study.results import Found, computed, read_panels
from rlanything.core.errors import ConfigError
from rlanything.core.types import Json
from rlanything.runs.provenance import flat

COMPUTED = ("hypotheses", "arms")
"""What of study.json follows from evaluation/. How tasks were rewritten over time follows from runs, which are not
published."""


def check(found: Found, folder: Path) -> None:
    """Raise `ConfigError`, naming the first number or verdict of study.json that does not follow from evaluation/.

    Raises `ReportError` for an evaluation that cannot be read.
    """
    panels = read_panels(folder, found.study, "take it from git")
    rows, values = computed(found.study, panels, found.metrics)
    known = {name for given in found.values.values() for name in given}  # newer code may have more metrics
    kept = {arm: {name: one for name, one in given.items() if name in known} for arm, given in values.items()}
    there, here = _flat(found), _flat(replace(found, rows=rows, values=kept))
    for key in {**there, **here}:
        one, other = there.get(key, "nothing"), here.get(key, "nothing")
        if not _same(one, other):
            raise ConfigError(
                f"{folder / RESULTS}: {key} = {one}, and from evaluation/ follows {other}; take both from git"
            )


def _flat(found: Found) -> dict[str, Json]:
    results: dict[str, Any] = to_json(found)
    return flat({part: results[part] for part in COMPUTED})


def _same(one: Json, other: Json) -> bool:
    """Whether both are the same, numbers up to the rounding of another processor or library."""
    if isinstance(one, float) and isinstance(other, float):
        return isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
    return one == other
