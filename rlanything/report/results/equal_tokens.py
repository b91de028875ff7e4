"""Every arm's curve where it had sampled as many tokens as the cheapest run by its end.

An iteration costs one arm more than another: votes are sampled, tasks are replaced. A curve over iterations does not
show that. `tokens_before` of metrics.jsonl counts what the policy and the reward model had sampled when the curve's
point was measured; the adapter's replies are not in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rlanything.report.results.curves import Curves, Run
from rlanything.report.results.metrics import Metric

TOKENS = "tokens_before"


@dataclass(frozen=True)
class ArmAtTokens:
    """One arm, mean over seeds."""

    tokens: float
    """Of a whole run."""
    at: Mapping[str, float]
    """Name of a metric -> its value at the budget."""
    end: Mapping[str, float]
    """The same at the end of the run."""


@dataclass(frozen=True)
class EqualTokens:
    """The arms whose runs counted their tokens. budget: the tokens of the run that sampled the fewest."""

    budget: float
    arms: Mapping[str, ArmAtTokens]


def at_equal_tokens(curves: Curves, metrics: Sequence[Metric]) -> EqualTokens | None:
    """The comparison by `metrics`; None where fewer than two arms can be compared."""
    counted = {arm: runs for arm, runs in curves.items() if all(_tokens(run) for run in runs.values())}
    if len(counted) < 2:
        return None
    budget = min(_tokens(run) for runs in counted.values() for run in runs.values())
    return EqualTokens(
        budget, {arm: _arm(list(runs.values()), budget, metrics) for arm, runs in counted.items()}
    )


def _arm(runs: Sequence[Run], budget: float, metrics: Sequence[Metric]) -> ArmAtTokens:
    ends = [_tokens(run) for run in runs]
    measured = [m for m in metrics if all(run.get(m.curve) for run in runs)]
    return ArmAtTokens(
        float(np.mean(ends)),
        {m.name: float(np.mean([_value(run, m, budget) for run in runs])) for m in measured},
        {
            m.name: float(np.mean([_value(run, m, end) for run, end in zip(runs, ends, strict=True)]))
            for m in measured
        },
    )


def _tokens(run: Run) -> float:
    """What the run sampled in all; 0 where it was not counted."""
    return max(run.get(TOKENS, {}).values(), default=0.0)


def _value(run: Run, metric: Metric, tokens: float) -> float:
    """The curve at so many tokens, on the line between the points measured before and after."""
    points = [(run[TOKENS][i], value) for i, value in run[metric.curve].items() if i in run[TOKENS]]
    return float(np.interp(tokens, [x for x, _ in points], [y for _, y in points]))
