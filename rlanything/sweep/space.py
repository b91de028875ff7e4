"""From what a sampler draws to what is set in the configuration, and back.

A sampler draws numbers by name; a band is two of them, `<name>.centre` and `<name>.width`. The configuration gets
keys: `adaptation.alpha_low` and `adaptation.alpha_high`. Numbers are rounded, so that a params.yaml can be read; a
trial is what it was rounded to.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from rlanything.config import ConfigError
from rlanything.sweep.declare import Band, Choices, Parameter, Range, Sweep, Value

SETS = "sets"
"""Name of the attribute of a trial that holds the keys that it sets."""
DIGITS = 4
CORNERS = 1024
"""So many corners of a space are checked before any work; each takes less than a millisecond."""
GRID_POINTS = 200
"""A grid with more points than this is taken for a mistake."""


def distributions(sweep: Sweep) -> dict[str, BaseDistribution]:
    """What the sampler draws, by name."""
    found: dict[str, BaseDistribution] = {}
    for name, parameter in sweep.space.items():
        if isinstance(parameter, Band):
            found[f"{name}.centre"] = FloatDistribution(*parameter.centre, step=parameter.step)
            found[f"{name}.width"] = FloatDistribution(*parameter.width, step=parameter.step)
        else:
            found[name] = _distribution(parameter)
    return found


def _distribution(parameter: Choices | Range) -> BaseDistribution:
    if isinstance(parameter, Choices):
        return CategoricalDistribution(parameter.choices)
    if parameter.whole:
        whole = int(parameter.step or 1)
        return IntDistribution(int(parameter.low), int(parameter.high), log=parameter.log, step=whole)
    step = None if parameter.step is None else float(parameter.step)
    return FloatDistribution(float(parameter.low), float(parameter.high), log=parameter.log, step=step)


def values(sweep: Sweep, params: Mapping[str, Any]) -> dict[str, Value]:
    """The keys that a drawn point sets."""
    found: dict[str, Value] = {}
    for name, parameter in sweep.space.items():
        if isinstance(parameter, Band):
            centre, half = params[f"{name}.centre"], params[f"{name}.width"] / 2
            low, high = parameter.between
            found[low], found[high] = _threshold(centre - half), _threshold(centre + half)
        else:
            found[name] = _short(params[name])
    return found


def params(sweep: Sweep, wanted: Mapping[str, Value]) -> dict[str, Any] | None:
    """The point that sets `wanted` and nothing else, or None where the space has no such point."""
    if set(wanted) - set(sweep.keys):
        return None
    found: dict[str, Any] = {}
    for name, parameter in sweep.space.items():
        if isinstance(parameter, Band):
            low, high = (float(wanted[key]) for key in parameter.between)
            found[f"{name}.centre"], found[f"{name}.width"] = (
                _threshold((low + high) / 2),
                _threshold(high - low),
            )
        else:
            found[name] = _like(wanted[name], parameter)
    inside = all(_holds(distribution, found[name]) for name, distribution in distributions(sweep).items())
    return found if inside else None


def _like(value: Value, parameter: Choices | Range) -> Value:
    """`value` with the type that the distribution has: 1 and 1.0 are the same point."""
    if isinstance(parameter, Choices):
        return next((c for c in parameter.choices if type(c) is type(value) and c == value), value)
    return value if parameter.whole or isinstance(value, str) else float(value)


def _holds(distribution: BaseDistribution, value: Any) -> bool:
    try:
        return distribution._contains(distribution.to_internal_repr(value))
    except (ValueError, TypeError):
        return False


def grid(sweep: Sweep) -> list[dict[str, Any]]:
    """Every point of a space that has only choices and steps. Raises `ConfigError` for any other."""
    axes = {name: _axis(name, d) for name, d in distributions(sweep).items()}
    count = math.prod(len(axis) for axis in axes.values())
    if count > GRID_POINTS:
        raise ConfigError(f"sampler = grid: the space has {count} points; at most {GRID_POINTS} can be run")
    return [dict(zip(axes, point, strict=True)) for point in itertools.product(*axes.values())]


def _axis(name: str, distribution: BaseDistribution) -> list[Any]:
    if isinstance(distribution, CategoricalDistribution):
        return list(distribution.choices)
    if isinstance(distribution, IntDistribution) and not distribution.log:
        return list(range(distribution.low, distribution.high + 1, distribution.step))
    if isinstance(distribution, FloatDistribution) and distribution.step is not None:
        count = round((distribution.high - distribution.low) / distribution.step)
        return [_short(distribution.low + i * distribution.step) for i in range(count + 1)]
    raise ConfigError(f"sampler = grid: {name} needs a list of values, or a step")


def ends(parameter: Parameter, name: str) -> list[dict[str, Value]]:
    """The extreme settings of one parameter: what a configuration must be able to take."""
    if isinstance(parameter, Choices):
        return [{name: choice} for choice in parameter.choices]
    if isinstance(parameter, Range):
        return [{name: _short(parameter.low)}, {name: _short(parameter.high)}]
    low, high = parameter.between
    corners = itertools.product(parameter.centre, parameter.width)
    return [{low: _threshold(c - w / 2), high: _threshold(c + w / 2)} for c, w in corners]


INSIDE = 0.382
"""A place between two ends, as a share of the way, that is no whole number by chance."""


def inside(parameter: Parameter, name: str) -> dict[str, Value]:
    """A setting between the ends of one parameter: ends like 1.0 may be possible where fractions are not."""
    if isinstance(parameter, Choices):
        return {name: parameter.choices[0]}
    if isinstance(parameter, Band):
        centre, width = (a + INSIDE * (b - a) for a, b in (parameter.centre, parameter.width))
        lower, upper = parameter.between
        return {lower: _threshold(centre - width / 2), upper: _threshold(centre + width / 2)}
    low, high = parameter.low, parameter.high
    if parameter.whole or low == high:
        return {name: low}
    if parameter.step is not None:
        return {name: _short(low + parameter.step)}
    found = low * (high / low) ** INSIDE if parameter.log else low + INSIDE * (high - low)
    return {name: _short(float(found))}


def corners(sweep: Sweep) -> Iterator[dict[str, Value]]:
    """The extreme settings of all parameters together; of more than `CORNERS` as many by chance."""
    axes = [ends(parameter, name) for name, parameter in sweep.space.items()]
    count = math.prod(len(axis) for axis in axes)
    chosen = range(count) if count <= CORNERS else random.Random(0).sample(range(count), CORNERS)
    for number in chosen:
        corner: dict[str, Value] = {}
        for axis in axes:
            number, place = divmod(number, len(axis))
            corner |= axis[place]
        yield corner


def _short(value: Any) -> Any:
    """A float with four digits that count; everything else as it is."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _threshold(value: float) -> float:
    """Four decimals: a difference that should be 0 is 0. `+ 0.0` turns -0.0 into 0.0."""
    return round(value, DIGITS) + 0.0


def outside(sweep: Sweep, attributes: Mapping[str, Any]) -> bool:
    """Whether a trial sets something that no point of the space sets: it has a result, but no place there."""
    return SETS in attributes and params(sweep, attributes[SETS]) is None
