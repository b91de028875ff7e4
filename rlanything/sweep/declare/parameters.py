"""The three forms that a parameter of the space can have: choices, a range, a band between two thresholds."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, model_validator

from rlanything.config import LISTED, Section

Value = bool | int | float | str
"""What a key of the configuration can be set to."""
Ends = Annotated[tuple[float, float], LISTED]
"""The first and the last value, both included."""
NARROWEST = 0.001
"""The smallest width of a band. Thresholds are rounded to a tenth of it, so the two never meet."""


class Choices(Section):
    """One of several values, in no order."""

    choices: Annotated[list[Value], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_distinct(self) -> Choices:
        if len({repr(choice) for choice in self.choices}) < len(self.choices):
            raise ValueError("a value is listed twice")
        return self


class Range(Section):
    """A number between two ends, both included. It is an integer when both ends (and the step) are."""

    low: int | float
    high: int | float
    log: bool = False
    step: int | float | None = None

    @property
    def whole(self) -> bool:
        """Whether the parameter is an integer."""
        return all(isinstance(v, int) for v in (self.low, self.high, 1 if self.step is None else self.step))

    @model_validator(mode="after")
    def _check_ends(self) -> Range:
        if self.low > self.high:
            raise ValueError(f"low = {self.low} must not exceed high = {self.high}")
        if self.log and self.low <= 0:
            raise ValueError(f"low = {self.low} must be above 0 on a logarithmic scale")
        if self.step is not None and (self.log or self.step <= 0):
            raise ValueError(f"step = {self.step} must be above 0, and is allowed with log = false only")
        _check_step(self.low, self.high, self.step)
        return self


class Band(Section):
    """Two thresholds as centre and width, so that the lower is below the upper at every point of the space."""

    between: Annotated[tuple[str, str], LISTED]
    """The keys of the lower and of the upper threshold."""
    centre: Ends
    width: Ends
    step: Annotated[float, Field(gt=0)] | None = None
    """Spacing of the values of centre and width; None: any value."""

    @model_validator(mode="after")
    def _check_ends(self) -> Band:
        for name, (low, high) in (("centre", self.centre), ("width", self.width)):
            if low > high:
                raise ValueError(f"{name} = [{low}, {high}]: the first must not exceed the second")
            _check_step(low, high, self.step)
        if self.width[0] < NARROWEST:
            raise ValueError(f"width = [{self.width[0]}, {self.width[1]}]: must be {NARROWEST} or more")
        return self


def _check_step(low: float, high: float, step: float | None) -> None:
    """Raise `ValueError` unless a whole number of steps leads from `low` to `high`: else `high` is never drawn."""
    steps = 0.0 if step is None else (high - low) / step
    if abs(steps - round(steps)) > 1e-6:
        raise ValueError(f"step = {step}: whole steps must lead from {low} to {high}")


def _form(value: Any) -> str | None:
    """The form of a parameter, by the keys it has; None: none of the three."""
    if isinstance(value, (list, Choices)) or (isinstance(value, dict) and "choices" in value):
        return "choices"
    if isinstance(value, Band) or (isinstance(value, dict) and ("between" in value or "centre" in value)):
        return "band"
    return "range" if isinstance(value, (dict, Range)) else None


Parameter = Annotated[
    Annotated[Choices, Tag("choices")] | Annotated[Range, Tag("range")] | Annotated[Band, Tag("band")],
    Discriminator(
        _form,
        custom_error_type="parameter",
        custom_error_message="expected a list of values, {low, high} or {between, centre, width}",
    ),
]
