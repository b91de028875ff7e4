"""The samplers that a sweep file can name. A new one is a new entry of `SAMPLERS`; nothing else names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from optuna.samplers import BaseSampler, GPSampler, NSGAIISampler, QMCSampler, RandomSampler, TPESampler


@dataclass(frozen=True)
class SamplerSpec:
    """How Optuna's sampler is made, and how a sweep uses it."""

    make: Callable[[int, int], BaseSampler]
    """From a seed and the declared `startup`."""
    joint: bool = True
    """It draws all parameters of a point at once; False: each by itself."""
    one_sequence: bool = False
    """All trials take points from one sequence; False: each trial has a random stream of its own."""
    every_point: bool = False
    """The trials are all points of the space, queued at the start; the sampler draws none of them."""
    baselines_inside: bool = False
    """It fails on finished trials outside the space, so the baselines must be points of the space."""
    least_startup: int = 1
    """The smallest `startup` that it accepts."""


def _tpe(seed: int, startup: int) -> BaseSampler:
    """`constant_liar` keeps new points away from where other trials are running."""
    return TPESampler(seed=seed, n_startup_trials=startup, multivariate=True, constant_liar=True)


SAMPLERS: Mapping[str, SamplerSpec] = {
    "tpe": SamplerSpec(_tpe),
    "gp": SamplerSpec(
        lambda seed, startup: GPSampler(seed=seed, n_startup_trials=startup), baselines_inside=True
    ),
    # Children have two parents, so the population needs two members.
    "nsga2": SamplerSpec(
        lambda seed, startup: NSGAIISampler(seed=seed, population_size=startup), least_startup=2
    ),
    "qmc": SamplerSpec(lambda seed, _: QMCSampler(seed=seed, scramble=True), one_sequence=True),
    "random": SamplerSpec(lambda seed, _: RandomSampler(seed=seed), joint=False),
    "grid": SamplerSpec(lambda seed, _: RandomSampler(seed=seed), joint=False, every_point=True),
}
"""Name in a sweep file -> sampler."""
