"""The smallest difference that can be shown, against simulated experiments that are tested as the report tests them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlanything.report.formatting import smallest
from rlanything.report.results.metrics import named
from rlanything.report.results.power import Components
from rlanything.report.results.statistics import p_value, spread

SIMULATED = 1500


def differences(
    rng: np.random.Generator, parts: Components, seeds: int, games: int, mean: float
) -> np.ndarray:
    """One experiment: differences (seeds, games) around a mean."""
    of_seeds = rng.normal(0, parts.seeds**0.5, (seeds, 1))
    of_games = rng.normal(0, parts.games**0.5, (1, games))
    return mean + of_seeds + of_games + rng.normal(0, parts.rest**0.5, (seeds, games))


@pytest.mark.parametrize(
    ("parts", "seeds", "games"),
    [
        (Components(0.0004, 0.02, 0.1), 8, 60),
        (Components(0.002, 0.01, 0.05), 5, 80),
        (Components(0.0, 0.05, 0.05), 4, 50),
        (Components(0.01, 0.0, 0.02), 3, 40),
    ],
)
@pytest.mark.parametrize("power", [0.5, 0.8])
def test_a_difference_of_that_size_is_found_with_that_probability(parts, seeds, games, power):
    """The report's test is cautious where seeds or games vary little, so it may find a little less."""
    rng = np.random.default_rng(0)
    least = parts.detectable(seeds, games, power)
    found = [p_value(differences(rng, parts, seeds, games, least)) < 0.05 for _ in range(SIMULATED)]
    assert np.mean(found) == pytest.approx(power, abs=0.06)


@pytest.mark.parametrize(("seeds", "share"), [(4, 0.72), (2, 0.55)])
def test_where_seeds_vary_little_few_of_them_find_it_less_often(seeds, share):
    """The components of the recorded ladder in-domain."""
    rng, parts = np.random.default_rng(0), Components(0.0, 0.04, 0.138)
    least = parts.detectable(seeds, 100)
    found = [p_value(differences(rng, parts, seeds, 100, least)) < 0.05 for _ in range(SIMULATED)]
    assert np.mean(found) == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize("alpha", [0.01, 0.05])
def test_nothing_is_found_more_often_than_alpha_where_there_is_nothing(alpha):
    rng = np.random.default_rng(1)
    parts = Components(0.002, 0.01, 0.05)
    found = [p_value(differences(rng, parts, 5, 60, 0.0)) < alpha for _ in range(SIMULATED)]
    assert np.mean(found) <= alpha + 0.02


def test_the_components_of_measured_differences_are_those_that_they_were_drawn_from():
    rng = np.random.default_rng(2)
    parts = Components(0.02, 0.01, 0.05)
    found = Components.mean([Components.of(differences(rng, parts, 6, 40, 0.1)) for _ in range(300)])
    assert (found.seeds, found.games, found.rest) == pytest.approx(
        (parts.seeds, parts.games, parts.rest), rel=0.1
    )


def test_the_spread_for_the_measured_size_is_that_of_the_reports_intervals():
    rng = np.random.default_rng(3)
    cells = differences(rng, Components(0.02, 0.03, 0.01), 4, 30, 0.0)
    measured, planned = spread(cells), Components.of(cells).spread(4, 30)
    assert (planned.variance, planned.freedom) == pytest.approx((measured.variance, measured.freedom))


@given(
    st.floats(1e-4, 0.1), st.floats(1e-4, 0.1), st.floats(1e-4, 0.5), st.integers(2, 30), st.integers(2, 300)
)
def test_more_seeds_and_games_show_smaller_differences_and_more_power_needs_larger_ones(
    a, b, c, seeds, games
):
    parts = Components(a, b, c)
    least = parts.detectable(seeds, games)
    assert parts.standard_error(seeds + 1, games) < parts.standard_error(seeds, games)
    assert parts.standard_error(seeds, games + 1) < parts.standard_error(seeds, games)
    assert parts.detectable(seeds, games, power=0.5) < least < parts.detectable(seeds, games, power=0.95)
    assert least < parts.detectable(seeds, games, alpha=0.01)


def test_a_single_seed_or_game_says_nothing_about_others():
    with pytest.raises(ValueError, match="1 seeds and 9 games: a spread between both needs two of each"):
        Components.of(np.zeros((1, 9)))
    with pytest.raises(ValueError, match="2 seeds and 1 games: a test over both needs two of each"):
        Components(0.1, 0.1, 0.1).detectable(2, 1)


def test_no_difference_of_shares_is_above_100_points():
    parts = Components(0.3, 0.1, 0.1)
    accuracy, tasks = named("in_domain"), named("accepted_tasks")
    assert smallest(parts.detectable(2, 8), accuracy) == "over 100"
    assert (smallest(0.2, accuracy), smallest(20.0, tasks), smallest(None, accuracy)) == ("20.0", "20.0", "–")
