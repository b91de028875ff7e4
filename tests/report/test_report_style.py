"""Arms can be told apart in figures, also by people who see no red or no green."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from rlanything.report.results.paper import ORDER
from rlanything.report.style import KNOWN, SPARE, Look

SEEN = {
    "all colours": np.eye(3),
    "no red (protanopia)": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "no green (deuteranopia)": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
"""Of linear RGB. Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
Deficiency", IEEE Transactions on Visualization and Computer Graphics 15(6), 2009, severity 1.0."""
XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
"""From linear sRGB with the white point D65 (IEC 61966-2-1)."""
APART, CLOSE = 30.0, 15.0
"""Distances in CIELAB, where 2.3 is just noticeable: below the first, shape must help; below the second, twice."""


def lab(colour: str, seen: np.ndarray) -> np.ndarray:
    """CIELAB of `#rrggbb` as somebody sees it."""
    values = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    ratios = XYZ @ np.clip(seen @ linear, 0.0, 1.0) / XYZ.sum(axis=1)
    x, y, z = np.where(ratios > 216 / 24389, np.cbrt(ratios), (24389 / 27 * ratios + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(one: Look, two: Look, seen: np.ndarray) -> float:
    return float(np.linalg.norm(lab(one.colour, seen) - lab(two.colour, seen)))


@pytest.mark.parametrize("who", SEEN)
def test_lines_of_like_colours_differ_in_marker_and_dash(who):
    for (a, one), (b, two) in combinations([*KNOWN.items(), *enumerate(SPARE)], 2):
        apart = distance(one, two, SEEN[who])
        shapes = (one.marker != two.marker) + (one.line != two.line)
        assert shapes >= (apart < APART) + (apart < CLOSE), (a, b, apart)


@pytest.mark.parametrize("who", SEEN)
def test_the_arms_of_the_ablation_are_apart_by_colour_alone(who):
    arms = [KNOWN[arm] for arm in ("outcome", *ORDER)]
    assert min(distance(one, two, SEEN[who]) for one, two in combinations(arms, 2)) > CLOSE


def test_grey_looks_the_same_to_everybody():
    for matrix in SEEN.values():
        np.testing.assert_allclose(lab("#808080", matrix), [53.585, 0.0, 0.0], atol=0.02)


def test_red_and_green_look_alike_without_one_of_the_cones():
    """The simulation finds what it is for: a red and a green that are far apart to others."""
    red, green = Look("#c05020", "o"), Look("#7a7a10", "o")
    apart = {who: distance(red, green, matrix) for who, matrix in SEEN.items()}
    assert apart["no green (deuteranopia)"] < CLOSE < APART < apart["all colours"]
