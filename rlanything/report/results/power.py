"""Power: the smallest difference of two arms that n seeds and k games can show.

The model is that of `statistics`: a difference on a game with a seed is mean + seed + game + rest. Its components are
estimated from measured differences (analysis of variance: Searle, Casella and McCulloch, Variance Components, 1992,
chapter 4). For n seeds and k games they give the variance of the mean and Satterthwaite's degrees of freedom f, as
`statistics.spread` has them for measured cells. The two-sided t-test at level alpha finds a true difference d with

    power = P(T' > t), where t is the 1 - alpha / 2 quantile of Student's t with f degrees of freedom, and T' has the
    noncentral t distribution with f degrees of freedom and noncentrality d / standard error

(Cohen, Statistical Power Analysis, 1988, chapter 2; the other tail is below alpha / 2 and left out). The smallest
difference is the noncentrality that gives the wanted power, times the standard error.

The test of `statistics` takes a mean square below that of the rest for as large as the rest. So where seeds vary little
it finds the difference less often than the formula says: with four seeds and 100 games about 72 times in 100 instead of
80, with two about 55 times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from scipy.special import nctdtrinc, stdtrit

from rlanything.report.results.statistics import Floats, Spread


@dataclass(frozen=True)
class Components:
    """Variances of what a difference is made of: the seed's, the game's, and the rest's."""

    seeds: float
    games: float
    rest: float

    @classmethod
    def of(cls, cells: Floats) -> Components:
        """From differences (seeds, games). Raises `ValueError` for fewer than two of either."""
        n, k = cells.shape
        if min(n, k) < 2:
            raise ValueError(f"{n} seeds and {k} games: a spread between both needs two of each")
        mean, rows, columns = cells.mean(), cells.mean(axis=1), cells.mean(axis=0)
        rest = float(((cells - rows[:, None] - columns + mean) ** 2).sum()) / ((n - 1) * (k - 1))
        of_seeds = max(0.0, float(rows.var(ddof=1)) - rest / k)
        return cls(of_seeds, max(0.0, float(columns.var(ddof=1)) - rest / n), rest)

    @classmethod
    def mean(cls, found: Sequence[Components]) -> Components:
        """The mean of several estimates. Raises `ZeroDivisionError` for none."""
        n = len(found)
        return cls(
            sum(c.seeds for c in found) / n, sum(c.games for c in found) / n, sum(c.rest for c in found) / n
        )

    def spread(self, seeds: int, games: int) -> Spread:
        """How uncertain the mean over so many seeds and games is. Raises `ValueError` for fewer than two of either."""
        if min(seeds, games) < 2:
            raise ValueError(f"{seeds} seeds and {games} games: a test over both needs two of each")
        of_seeds, of_games = self.rest + games * self.seeds, self.rest + seeds * self.games
        total = of_seeds + of_games - self.rest
        doubt = of_seeds**2 / (seeds - 1) + of_games**2 / (games - 1)
        doubt += self.rest**2 / ((seeds - 1) * (games - 1))
        return Spread(total / (seeds * games), max(1.0, total**2 / doubt) if doubt else 1.0)

    def standard_error(self, seeds: int, games: int) -> float:
        """Standard error of the mean difference."""
        return sqrt(self.spread(seeds, games).variance)

    def detectable(self, seeds: int, games: int, power: float = 0.8, alpha: float = 0.05) -> float:
        """The smallest true difference that the t-test finds with probability `power`, in the unit of the cells."""
        found = self.spread(seeds, games)
        least = float(stdtrit(found.freedom, 1.0 - alpha / 2))
        return float(nctdtrinc(found.freedom, 1.0 - power, least)) * sqrt(found.variance)
