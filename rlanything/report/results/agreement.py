"""How a reward model's verdicts agree with the labels of steps: on good steps, on bad ones, and beyond chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlanything.report.results.statistics import Estimate, Panel, estimate


@dataclass(frozen=True)
class Agreement:
    """One arm. good, bad: share of the good and of the bad steps that are judged so.

    kappa: of each seed with a labelled step.
    """

    good: Estimate
    bad: Estimate
    kappa: tuple[float, ...]
    steps: int
    """Labelled steps that a seed's reward model judged."""


def agreement(panel: Panel) -> Agreement | None:
    """The agreement of a panel with two channels: hits of the good steps and of the bad ones. None for an empty one."""
    good, bad = (estimate(_channel(panel, channel)) for channel in (0, 1))
    if good is None or bad is None:
        return None
    sums = [(panel.hits[:, i].sum(axis=1), panel.totals[:, i].sum(axis=1)) for i in range(len(panel.seeds))]
    tables = [(hits, totals) for hits, totals in sums if totals.any()]
    kappas = tuple(kappa(*map(float, (hits[0], totals[0], hits[1], totals[1]))) for hits, totals in tables)
    return Agreement(good, bad, kappas, int(tables[0][1].sum()))


def kappa(good_hits: float, good: float, bad_hits: float, bad: float) -> float:
    """Cohen's kappa (1960): 1 is full agreement, 0 is that of a judge who guesses with the same habits.

    0 where there is nothing to agree on beyond chance: all labels and all verdicts are the same.
    """
    total = good + bad
    said_good = good_hits + bad - bad_hits
    chance = (good * said_good + bad * (total - said_good)) / total**2
    return ((good_hits + bad_hits) / total - chance) / (1.0 - chance) if chance < 1.0 else 0.0


def _channel(panel: Panel, channel: int) -> Panel:
    """One channel of the panel as a panel of its own."""
    only = np.s_[channel : channel + 1]
    return Panel(panel.seeds, panel.tasks, panel.hits[only], panel.totals[only], panel.limits)
