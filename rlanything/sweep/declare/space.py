"""From the numbers that a sampler draws to the keys that a trial sets, and back.

A sampler draws numbers by name; a band is two of them, `<name>.centre` and `<name>.width`. A trial sets keys of the
configuration: `adaptation.alpha_low` and `adaptation.alpha_high`. Values are rounded so that params.yaml is readable;
the trial runs with the rounded values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from rlanything.core.errors import ConfigError
from rlanything.sweep.declare.parameters import Band, Choices, Range, Value
from rlanything.sweep.declare.sweep import Sweep

SETS = "sets"
"""The attribute of an Optuna trial that holds the keys that it sets."""
DIGITS = 4
GRID_POINTS = 200
"""A grid with more points is refused as a mistake."""


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
        step = int(parameter.step or 1)
        return IntDistribution(int(parameter.low), int(parameter.high), log=parameter.log, step=step)
    spacing = None if parameter.step is None else float(parameter.step)
    return FloatDistribution(float(parameter.low), float(parameter.high), log=parameter.log, step=spacing)


def values(sweep: Sweep, params: Mapping[str, Any]) -> dict[str, Value]:
    """The keys that a drawn point sets."""
    found: dict[str, Value] = {}
    for name, parameter in sweep.space.items():
        if isinstance(parameter, Band):
            found |= thresholds(parameter, params[f"{name}.centre"], params[f"{name}.width"])
        else:
            found[name] = rounded(params[name])
    return found


def thresholds(band: Band, centre: float, width: float) -> dict[str, Value]:
    """The two keys of a band, rounded to `DIGITS` decimals."""
    low, high = band.between
    return {low: _decimals(centre - width / 2), high: _decimals(centre + width / 2)}


def params(sweep: Sweep, wanted: Mapping[str, Value]) -> dict[str, Any] | None:
    """The point that sets `wanted` and nothing else, or None where the space has no such point."""
    if set(wanted) - set(sweep.keys):
        return None
    found: dict[str, Any] = {}
    for name, parameter in sweep.space.items():
        if isinstance(parameter, Band):
            low, high = (float(wanted[key]) for key in parameter.between)
            found[f"{name}.centre"], found[f"{name}.width"] = (
                _decimals((low + high) / 2),
                _decimals(high - low),
            )
        else:
            found[name] = _as_drawn(wanted[name], parameter)
    inside = all(_contains(distribution, found[name]) for name, distribution in distributions(sweep).items())
    return found if inside else None


def outside(sweep: Sweep, attributes: Mapping[str, Any]) -> bool:
    """Whether a trial sets something that no point of the space sets; the samplers must not learn from it."""
    return SETS in attributes and params(sweep, attributes[SETS]) is None


def _as_drawn(value: Value, parameter: Choices | Range) -> Value:
    """`value` with the type that the distribution draws: 1 and 1.0 are the same point."""
    if isinstance(parameter, Choices):
        return next((c for c in parameter.choices if type(c) is type(value) and c == value), value)
    return value if parameter.whole or isinstance(value, str) else float(value)


def _contains(distribution: BaseDistribution, value: Any) -> bool:
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
        return [rounded(distribution.low + i * distribution.step) for i in range(count + 1)]
    raise ConfigError(f"sampler = grid: {name} needs a list of values, or a step")


def rounded(value: Any) -> Any:
    """A float with `DIGITS` significant digits; everything else as it is."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _decimals(value: float) -> float:
    """Rounded to decimals, so that a difference that should be 0 is 0. `+ 0.0` turns -0.0 into 0.0."""
    return round(value, DIGITS) + 0.0
