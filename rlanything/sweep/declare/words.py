"""A sweep's space and budget in words, for the terminal."""

from __future__ import annotations

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from rlanything.sweep.declare.sweep import Budget


def drawn(distribution: BaseDistribution) -> str:
    """Which values are drawn: `one of 1, 2, 4`, or `0.1 to 1, on a log scale`."""
    if isinstance(distribution, CategoricalDistribution):
        return "one of " + ", ".join(str(choice) for choice in distribution.choices)
    assert isinstance(distribution, (IntDistribution, FloatDistribution))
    text = f"{distribution.low} to {distribution.high}"
    if distribution.log:
        return f"{text}, on a log scale"
    whole = isinstance(distribution, IntDistribution) and distribution.step == 1
    return f"{text}, whole numbers" if whole else f"{text}{_step(distribution.step)}"


def _step(step: float | None) -> str:
    return "" if step is None else f" in steps of {step}"


def until(budget: Budget, grid: int | None = None) -> str:
    """When no further trial is started: `20 trials`, `90 minutes`, or whichever comes first.

    grid: the number of trials where the sampler runs every point; they are the budget then.
    """
    minutes = None if budget.minutes is None else f"{budget.minutes:g} minutes"
    trials = None if budget.trials is None else f"{budget.trials} trials"
    parts = [trials if grid is None else f"the grid, {grid} trials", minutes]
    return " or ".join(part for part in parts if part is not None)
