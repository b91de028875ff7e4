"""How many rewritten tasks an arm accepted while it trained, and how well the policy solved them, part by part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from rlanything.report.results.curves import Curves, Run
from rlanything.report.results.statistics import COUNTS, SHARES, Estimate, Limits, estimate, seed_means

PARTS = 6
"""Into so many parts of equal length a training is divided, or into its iterations where it has fewer."""


@dataclass(frozen=True)
class Part:
    """Some iterations of an arm, `first` to `last`, over its seeds.

    accepted: rewrites that became a slot's task, a seed. accuracy: of the policy on accepted tasks, when they were
    rolled out; None where none was. band: the share of rolled-out tasks between the thresholds.
    """

    first: int
    last: int
    accepted: Estimate
    accuracy: Estimate | None
    band: Estimate | None


def parts_of(curves: Curves) -> dict[str, tuple[Part, ...]]:
    """arm -> its parts in order, for the arms that accepted a task."""
    return {arm: _parts(runs) for arm, runs in curves.items() if _accepts(runs)}


def _accepts(runs: Mapping[int, Run]) -> bool:
    return any(sum(run.get("accepted", {}).values()) for run in runs.values())


def _parts(runs: Mapping[int, Run]) -> tuple[Part, ...]:
    iterations = sorted({i for run in runs.values() for i in run.get("accepted", {})})
    divided = np.array_split(iterations, min(PARTS, len(iterations)))
    return tuple(_part(runs, [int(i) for i in some]) for some in divided)


def _part(runs: Mapping[int, Run], iterations: Sequence[int]) -> Part:
    def over_seeds(key: str, reduce: Callable[[list[float]], float], limits: Limits) -> Estimate | None:
        values = {
            seed: [reduce(found)]
            for seed, run in runs.items()
            if (found := [run[key][i] for i in iterations if i in run.get(key, {})])
        }
        return estimate(seed_means(values, limits))

    accepted = over_seeds("accepted", sum, COUNTS)
    assert accepted is not None, "these are the iterations that have the key"
    return Part(
        iterations[0],
        iterations[-1],
        accepted,
        over_seeds("accepted_accuracy", fmean, SHARES),
        over_seeds("band_coverage", fmean, SHARES),
    )
