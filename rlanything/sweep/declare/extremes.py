"""The settings of a space that are checked before any work: its ends, its corners, and values between."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator

from rlanything.sweep.declare.parameters import Band, Choices, Parameter, Range, Value
from rlanything.sweep.declare.space import rounded, thresholds
from rlanything.sweep.declare.sweep import Sweep

CORNERS = 1024
"""The most corners that are checked; each check takes a millisecond or two."""
BETWEEN = 0.382
"""A place between two ends, as a share of the way; it gives a fraction where the ends are like 1.0."""


def extremes(sweep: Sweep) -> Iterator[dict[str, Value]]:
    """Every end of each parameter, one value between its ends, then the corners."""
    for name, parameter in sweep.space.items():
        yield from ends(parameter, name)
    for name, parameter in sweep.space.items():
        yield between(parameter, name)
    yield from corners(sweep)


def ends(parameter: Parameter, name: str) -> list[dict[str, Value]]:
    """The extreme settings of one parameter."""
    if isinstance(parameter, Choices):
        return [{name: choice} for choice in parameter.choices]
    if isinstance(parameter, Range):
        return [{name: rounded(parameter.low)}, {name: rounded(parameter.high)}]
    return [thresholds(parameter, c, w) for c, w in itertools.product(parameter.centre, parameter.width)]


def between(parameter: Parameter, name: str) -> dict[str, Value]:
    """A setting between the ends of one parameter: a key may take 1.0 and no fraction."""
    if isinstance(parameter, Choices):
        return {name: parameter.choices[0]}
    if isinstance(parameter, Band):
        centre, width = (a + BETWEEN * (b - a) for a, b in (parameter.centre, parameter.width))
        return thresholds(parameter, centre, width)
    low, high = parameter.low, parameter.high
    if parameter.whole or low == high:
        return {name: low}
    if parameter.step is not None:
        return {name: rounded(low + parameter.step)}
    found = low * (high / low) ** BETWEEN if parameter.log else low + BETWEEN * (high - low)
    return {name: rounded(float(found))}


def corners(sweep: Sweep) -> Iterator[dict[str, Value]]:
    """The extreme settings of all parameters together; a random `CORNERS` of them where there are more."""
    axes = [ends(parameter, name) for name, parameter in sweep.space.items()]
    count = math.prod(len(axis) for axis in axes)
    chosen = range(count) if count <= CORNERS else random.Random(0).sample(range(count), CORNERS)
    for number in chosen:
        corner: dict[str, Value] = {}
        for axis in axes:
            number, place = divmod(number, len(axis))
            corner |= axis[place]
        yield corner
