"""Chooses a trial's point: the declared sampler, with a random stream of its own for every trial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from rlanything.core.seeds import derive_seed
from rlanything.sweep.declare.samplers import SAMPLERS
from rlanything.sweep.declare.space import outside
from rlanything.sweep.declare.sweep import Sweep


class PerTrialSampler(optuna.samplers.BaseSampler):
    """The declared sampler, seeded anew for every trial.

    Optuna's samplers have one random stream for each process: two workers with the same seed draw the same points, and
    a worker that starts again repeats its first ones. Here trial n draws from stream n, whichever worker asks. What
    tpe, gp and nsga2 draw also depends on which trials are finished; what random, qmc and grid draw does not.

    A trial outside the space is hidden from the sampler.
    """

    def __init__(self, sweep: Sweep, distributions: dict[str, BaseDistribution]) -> None:
        self.sweep = sweep
        self.spec = SAMPLERS[sweep.sampler]
        self.distributions = distributions
        self.inner = self._seeded(0)

    def _seeded(self, number: int) -> optuna.samplers.BaseSampler:
        return self.spec.make(derive_seed(self.sweep.seed, "sweep", number) % 2**32, self.sweep.startup)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Start the trial's stream."""
        if outside(self.sweep, trial.user_attrs):
            return
        self.inner = self._seeded(0 if self.spec.one_sequence else trial.number)
        self.inner.before_trial(study, trial)

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """All of the space from the first trial on; Optuna's samplers know of it only after one is finished."""
        if outside(self.sweep, trial.user_attrs) or not self.spec.joint:
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
