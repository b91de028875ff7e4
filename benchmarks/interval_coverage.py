"""How often the 95 % interval holds the truth, measured on worlds whose truth is known.

    python -m benchmarks.interval_coverage

Each world draws task difficulties, seed effects and episodes, asks for the interval, and looks whether the population's
mean (new seeds, new tasks) lies inside. It prints the share for three methods, of all simulations and of the third in
which the seeds agree most:

    crossed    the report's: crossed random effects (`report/results/statistics.py`)
    student    Student's t for the spread between the seeds' values, whatever it is, and the tasks' own spread beside it
    bootstrap  seeds and tasks resampled, percentiles
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rlanything.core.seeds import derive_seed
from rlanything.report.results.statistics import Floats, Panel, contrast, estimate

LEVELS = (0.025, 0.975)
Terms = list[tuple[float, Panel]]
"""Panels with their signs: one arm, or an arm and minus its base."""


@dataclass(frozen=True)
class World:
    """Log-odds of success = gain + task + seed + interaction, each normal with the given standard deviation.

    `gain` None: one arm's mean is asked for. Otherwise the difference to a base without seed effects and without gain.
    """

    seeds: int
    tasks: int
    repeats: int
    seed_spread: float
    task_spread: float
    mixed_spread: float = 0.0
    gain: float | None = None


@dataclass(frozen=True)
class Measured:
    """By method: share of simulations whose interval held the truth, the same where seeds agree, and mean width."""

    coverage: dict[str, float]
    agreeing: dict[str, float]
    width: dict[str, float]


WORLDS = tuple(
    World(seeds, 100, 3, seed_spread, task_spread, mixed, gain)
    for seeds in (1, 2, 3, 5)
    for seed_spread, task_spread, mixed in (
        (0.0, 0.0, 0.0),
        (0.0, 1.5, 0.0),
        (0.1, 2.0, 0.5),
        (0.3, 1.5, 0.5),
        (1.0, 0.3, 0.3),
    )
    if seeds > 1 or seed_spread == 0.0
    for gain in (None, 0.5)
)


def measure(world: World, simulations: int, resamples: int, seed: int = 0) -> Measured:
    """Simulate `world` and count."""
    rng = np.random.default_rng(derive_seed(seed, "report.coverage", repr(world)))
    truth = _truth(world, rng)
    held = {name: np.zeros(simulations) for name in METHODS}
    width = {name: np.zeros(simulations) for name in METHODS}
    spread = np.zeros(simulations)
    for i in range(simulations):
        terms = _panels(world, rng)
        tasks = rng.multinomial(world.tasks, np.full(world.tasks, 1 / world.tasks), size=resamples)
        spread[i] = _values(terms, np.ones((1, world.tasks))).std()
        for name, method in METHODS.items():
            low, high = method(terms, tasks.astype(np.float64), rng)
            held[name][i], width[name][i] = low <= truth <= high, high - low
    agree = spread <= np.quantile(spread, 1 / 3)
    return Measured(
        {name: float(h.mean()) for name, h in held.items()},
        {name: float(h[agree].mean()) for name, h in held.items()},
        {name: float(w.mean()) for name, w in width.items()},
    )


def crossed(terms: Terms, tasks: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """The report's interval, which draws nothing."""
    arm = terms[0][1]
    compared = None if len(terms) == 1 else contrast(arm, terms[1][1])
    found = estimate(arm) if compared is None else compared.difference
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


def student(terms: Terms, tasks: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """Student's t with (seeds - 1) degrees of freedom for the seeds' own spread, and beside it that of the tasks."""
    cells = np.asarray(sum(sign * panel.hits[0] / panel.totals[0] for sign, panel in terms))
    count, size = cells.shape
    columns, rows = cells.mean(axis=0), cells.mean(axis=1, keepdims=True)
    variance, t = float(columns.var(ddof=1)) / size, np.zeros(len(tasks))
    if count > 1:
        rest = float(((cells - columns - rows + cells.mean()) ** 2).sum()) / ((count - 1) * (size - 1))
        variance = max(0.0, variance - rest / cells.size)
        t = rng.standard_t(count - 1, size=len(tasks)) * float(rows.std(ddof=1)) / np.sqrt(count)
    return _ends(cells.mean() + t + np.sqrt(variance) * rng.normal(size=len(tasks)))


def bootstrap(terms: Terms, tasks: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """The textbook hierarchical bootstrap: seeds and tasks with replacement, percentiles, nothing corrected."""
    seeds = len(terms[0][1].seeds)
    chosen = rng.multinomial(seeds, np.full(seeds, 1 / seeds), size=len(tasks)) / seeds
    return _ends((chosen * _values(terms, tasks)).sum(axis=1))


METHODS = {"crossed": crossed, "student": student, "bootstrap": bootstrap}


def coverage(
    worlds: Iterable[World] = WORLDS, simulations: int = 400, resamples: int = 500
) -> list[Measured]:
    """Measure every world and print one line for each; a good interval shows about .95."""
    print("share that holds the truth, of all / where seeds agree / mean width: " + ", ".join(METHODS))
    print("seeds  sd: seed task both   gain")
    found = []
    for w in worlds:
        result = measure(w, simulations, resamples)
        gain = "none" if w.gain is None else f"{w.gain:.1f}"
        numbers = "  ".join(
            f"{result.coverage[name]:.3f} / {result.agreeing[name]:.3f} / {result.width[name]:.3f}"
            for name in METHODS
        )
        spreads = f"{w.seed_spread:8.1f} {w.task_spread:4.1f} {w.mixed_spread:4.1f}"
        print(f"{w.seeds:5d} {spreads} {gain:>6}  {numbers}", flush=True)
        found.append(result)
    return found


def _values(terms: Terms, weights: Floats) -> Floats:
    """Value of each seed when task t counts weights[r, t] times: (r, seeds)."""
    return np.asarray(
        sum(sign * (weights @ panel.hits[0].T) / (weights @ panel.totals[0].T) for sign, panel in terms)
    )


def _ends(values: Floats) -> tuple[float, float]:
    low, high = np.nanquantile(values, LEVELS)
    return float(low), float(high)


def _panels(world: World, rng: np.random.Generator) -> Terms:
    shape = (world.seeds, world.tasks)
    task = world.task_spread * rng.normal(size=(1, world.tasks))
    seed = world.seed_spread * rng.normal(size=(world.seeds, 1))
    odds = (world.gain or 0.0) + task + seed + world.mixed_spread * rng.normal(size=shape)
    terms = [(1.0, _panel(world, rng, odds))]
    if world.gain is not None:
        terms.append((-1.0, _panel(world, rng, np.broadcast_to(task, shape))))
    return terms


def _panel(world: World, rng: np.random.Generator, odds: Floats) -> Panel:
    hits = rng.binomial(world.repeats, _share(odds)).astype(np.float64)[None]
    seeds, tasks = tuple(range(world.seeds)), tuple(f"task {i}" for i in range(world.tasks))
    return Panel(seeds, tasks, hits, np.full_like(hits, world.repeats))


def _truth(world: World, rng: np.random.Generator, size: int = 400_000) -> float:
    task, seed, mixed = rng.normal(size=(3, size))
    odds = world.task_spread * task
    arm = (world.gain or 0.0) + odds + world.seed_spread * seed + world.mixed_spread * mixed
    base = 0.0 if world.gain is None else float(_share(odds).mean())
    return float(_share(arm).mean()) - base


def _share(odds: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-odds)))


if __name__ == "__main__":
    coverage()
