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


def until(budget: Budget) -> str:
    """When no further trial is started: `20 trials`, `90 minutes`, or whichever comes first."""
    parts = [(budget.trials, "trials"), (budget.minutes, "minutes")]
    return " or ".join(f"{count:g} {unit}" for count, unit in parts if count is not None)
