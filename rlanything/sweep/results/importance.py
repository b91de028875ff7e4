"""How much each parameter matters, with intervals, because the trials are few and noisy.

PED-ANOVA (Watanabe et al., 2023; Optuna's implementation) compares where the better trials are along each parameter.
It is repeated on `REPLICATES` resamples: trials drawn with replacement, each mean moved at random by its standard
error. Where the intervals of two parameters overlap, no difference between them is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import optuna
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import FrozenTrial, TrialState, create_trial

from rlanything.core.seeds import derive_seed
from rlanything.report.results.statistics import Estimate

REPLICATES = 200
ENDS = (0.025, 0.975)
"""Quantiles of the replicates between which the interval lies."""
FEWEST = 8
"""With fewer trials there is no result."""


def importances(
    trials: Sequence[FrozenTrial], means: Sequence[float], errors: Sequence[float], way: int
) -> dict[str, Estimate]:
    """Parameter -> importance (they sum to 1) with its interval.

    Empty for one parameter, for too few trials, and where all have the same mean: then nothing is known.

    A parameter that has one value in all trials is left out: nothing is known of it.

    Args:
        trials: finished trials inside the space, each point once.
        means: the objective of each.
        errors: the standard error of each mean.
        way: +1 when more is better.
    """
    declared = trials[0].distributions if trials else {}
    names = [name for name in declared if len({trial.params[name] for trial in trials}) > 1]
    if len(names) < 2 or len(trials) < FEWEST or len(set(means)) == 1:
        return {}
    point = _ped_anova(trials, means, way, names)
    rng = np.random.default_rng(derive_seed(0, "sweep.importance", len(trials)))
    drawn = [
        _resampled(trials, np.array(means), np.array(errors), way, names, rng) for _ in range(REPLICATES)
    ]
    return {name: _interval(point.get(name, 0.0), [d.get(name, 0.0) for d in drawn]) for name in names}


def _interval(point: float, drawn: Sequence[float]) -> Estimate:
    low, high = np.quantile(drawn, ENDS)
    return Estimate(point, min(float(low), point), max(float(high), point))


def _resampled(
    trials: Sequence[FrozenTrial],
    means: np.ndarray,
    errors: np.ndarray,
    way: int,
    names: list[str],
    rng: np.random.Generator,
) -> Mapping[str, float]:
    chosen = rng.integers(0, len(trials), len(trials))
    moved = means[chosen] + errors[chosen] * rng.normal(size=len(chosen))
    return _ped_anova([trials[i] for i in chosen], moved, way, names)


def _ped_anova(
    trials: Sequence[FrozenTrial], values: Iterable[float], way: int, names: list[str]
) -> Mapping[str, float]:
    study = optuna.create_study(direction="maximize" if way > 0 else "minimize")
    study.add_trials(
        [
            create_trial(
                state=TrialState.COMPLETE, params=t.params, distributions=t.distributions, value=float(v)
            )
            for t, v in zip(trials, values, strict=True)
        ]
    )
    return get_param_importances(study, evaluator=PedAnovaImportanceEvaluator(), params=names)
