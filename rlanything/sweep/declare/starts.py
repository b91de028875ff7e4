"""The trials that are known before any is run: the paper's setting, the project's default, the points of a grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlanything.sweep.declare import space
from rlanything.sweep.declare.parameters import Value
from rlanything.sweep.declare.samplers import SAMPLERS
from rlanything.sweep.declare.sweep import PAPER, Sweep


@dataclass(frozen=True)
class Start:
    """A trial that is queued when the study is made: what it sets, and its point where the space has one."""

    label: str
    sets: Mapping[str, Value]
    point: Mapping[str, Any] | None


def starts(sweep: Sweep, base: Mapping[str, Value]) -> list[Start]:
    """Trials 0 and 1 (the paper's setting, the project's default), then a grid's points.

    Args:
        sweep: the declaration.
        base: the trials' common value of every key of the space and of `PAPER`.
    """
    default = {key: base[key] for key in sweep.keys}
    paper = {**default, **{k: v for k, v in PAPER.items() if k in base and (k in default or base[k] != v)}}
    baselines = [
        Start(label, sets, space.params(sweep, sets))
        for label, sets in (("paper", paper), ("default", default))
    ]
    if not SAMPLERS[sweep.sampler].every_point:
        return baselines
    points = [Start("", space.values(sweep, point), point) for point in space.grid(sweep)]
    return baselines + [start for start in points if start.sets not in (paper, default)]
