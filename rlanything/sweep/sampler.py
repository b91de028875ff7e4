"""What draws a trial's point: the declared sampler, with a stream of chance of its own for every trial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from rlanything.core.seeds import derive_seed
from rlanything.sweep.declare import Sweep
from rlanything.sweep.space import outside


class PerTrial(optuna.samplers.BaseSampler):
    """The declared sampler with a random stream of its own for every trial.

    Whichever worker asks for trial n draws from stream n: no two workers draw the same, and one that goes on after a
    crash draws what the first would have drawn from the same trials. tpe, gp and nsga2 learn from what is finished, so
    with two trials at once their points depend on which was faster; those of random, qmc and grid do not.
    A trial outside of the space is no question to the sampler.
    """

    def __init__(self, sweep: Sweep, distributions: dict[str, BaseDistribution]) -> None:
        self.sweep = sweep
        self.distributions = distributions
        self.inner = _sampler(sweep, 0)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Start the trial's stream. A quasi-random sequence is one for all: only its position changes."""
        if outside(self.sweep, trial.user_attrs):
            return
        self.inner = _sampler(self.sweep, 0 if self.sweep.sampler == "qmc" else trial.number)
        self.inner.before_trial(study, trial)

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """All of the space, known from the first trial on; nothing for a sampler that draws each name by itself."""
        if outside(self.sweep, trial.user_attrs) or self.sweep.sampler in ("random", "grid"):
            return {}
        return {name: d for name, d in self.distributions.items() if not d.single()}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Part of Optuna's protocol."""
        return self.inner.sample_relative(study, trial, search_space) if search_space else {}

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Any:
        """Part of Optuna's protocol."""
        return self.inner.sample_independent(study, trial, name, distribution)

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Part of Optuna's protocol."""
        if not outside(self.sweep, trial.user_attrs):
            self.inner.after_trial(study, trial, state, values)


def _sampler(sweep: Sweep, number: int) -> optuna.samplers.BaseSampler:
    seed = derive_seed(sweep.seed, "sweep", number) % 2**32
    samplers = optuna.samplers
    if sweep.sampler == "tpe":
        # constant_liar: stay away from where other trials are running.
        return samplers.TPESampler(
            seed=seed, n_startup_trials=sweep.startup, multivariate=True, constant_liar=True
        )
    if sweep.sampler == "gp":
        return samplers.GPSampler(seed=seed, n_startup_trials=sweep.startup)
    if sweep.sampler == "nsga2":
        return samplers.NSGAIISampler(seed=seed, population_size=sweep.startup)
    if sweep.sampler == "qmc":
        return samplers.QMCSampler(seed=seed, scramble=True)
    return samplers.RandomSampler(seed=seed)
