"""What a sweep file declares: the space, arms, seeds, budget, sampler, pruner and objectives, checked before any work.

    rlanything sweep experiments/sweep/thresholds.yaml

Its format is explained in docs/sweeps.md; the files in experiments/sweep/ are examples with every key commented.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Discriminator, Field, Tag, ValidationError, model_validator

from rlanything.config import Config, ConfigError, Positive, Section, unknown
from rlanything.report.setting import SETTINGS

Value = bool | int | float | str
"""What a key of the configuration can be set to."""
COST = "cost"
"""Replies sampled in training, the policy's and the reward model's, for one seed."""
METRICS = (*dict.fromkeys(metric for s in SETTINGS.values() for metric in s.titles), COST)
"""What can be an objective, in one setting or the other."""
CURVES = tuple(dict.fromkeys(metric for s in SETTINGS.values() for metric in s.curves))
"""Metrics that are measured while a trial trains, so that they can prune it."""
PAPER: Mapping[str, Value] = {
    "signals.lambda": 1.0,
    "adaptation.alpha_low": 0.2,
    "adaptation.alpha_high": 0.8,
}
"""The paper's point; trial 0 of every sweep."""
OWN = {"train.seeds": "seeds", "train.workers": "--workers"}
"""Keys that the sweep sets by itself, and what sets them."""
NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


class Choices(Section):
    """A parameter that takes one of several values, in no order."""

    choices: Annotated[list[Value], Field(min_length=1)]

    @model_validator(mode="after")
    def _distinct(self) -> Choices:
        if len({repr(choice) for choice in self.choices}) < len(self.choices):
            raise ValueError("a value stands there twice")
        return self


class Range(Section):
    """A number between two ends, both included. Whole numbers when both ends (and the step) are whole."""

    low: int | float
    high: int | float
    log: bool = False
    step: int | float | None = None

    @property
    def whole(self) -> bool:
        """Whether the parameter is an integer."""
        return all(isinstance(v, int) for v in (self.low, self.high, 1 if self.step is None else self.step))

    @model_validator(mode="after")
    def _possible(self) -> Range:
        if self.low > self.high:
            raise ValueError(f"low = {self.low} must not exceed high = {self.high}")
        if self.log and self.low <= 0:
            raise ValueError(f"low = {self.low} must be above 0 on a logarithmic scale")
        if self.step is not None and (self.log or self.step <= 0):
            raise ValueError(f"step = {self.step}: must be above 0, and goes with log = false only")
        _check_step(self.low, self.high, self.step)
        return self


def _check_step(low: float, high: float, step: float | None) -> None:
    """Raise `ValueError` unless whole steps lead from `low` to `high`: else `high` itself could not be drawn."""
    steps = 0.0 if step is None else (high - low) / step
    if abs(steps - round(steps)) > 1e-6:
        raise ValueError(f"step = {step}: whole steps must lead from {low} to {high}")


Ends = tuple[float, float]
NARROWEST = 0.001
"""Width of a band; thresholds are rounded to a tenth of it, so they never meet."""


class Band(Section):
    """Two thresholds as centre and width, so that the lower is below the upper at every point of the space."""

    between: tuple[str, str]
    """The keys of the lower and of the upper threshold."""
    centre: Ends
    width: Ends
    step: Annotated[float, Field(gt=0)] | None = None
    """Grid of centre and width; None: any value."""

    @model_validator(mode="after")
    def _possible(self) -> Band:
        for name, (low, high) in (("centre", self.centre), ("width", self.width)):
            if low > high:
                raise ValueError(f"{name} = [{low}, {high}]: the first must not exceed the second")
            _check_step(low, high, self.step)
        if self.width[0] < NARROWEST:
            raise ValueError(f"width = [{self.width[0]}, {self.width[1]}]: must be {NARROWEST} or more")
        return self


def _kind(value: Any) -> str | None:
    """Which form a parameter has, by what it holds; None: it has none of them."""
    if isinstance(value, (list, Choices)) or (isinstance(value, dict) and "choices" in value):
        return "choices"
    if isinstance(value, Band) or (isinstance(value, dict) and ("between" in value or "centre" in value)):
        return "band"
    return "range" if isinstance(value, (dict, Range)) else None


Parameter = Annotated[
    Annotated[Choices, Tag("choices")] | Annotated[Range, Tag("range")] | Annotated[Band, Tag("band")],
    Discriminator(
        _kind,
        custom_error_type="parameter",
        custom_error_message="expected a list of values, {low, high} or {between, centre, width}",
    ),
]


class Budget(Section):
    """When no further trial is started: after so many, or once they have together taken so many minutes."""

    trials: Annotated[int, Field(ge=2)] | None = None
    minutes: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _some(self) -> Budget:
        if self.trials is None and self.minutes is None:
            raise ValueError("give trials, minutes or both")
        return self


class Pruner(Section):
    """When a trial is given up early. `warmup`: points of its curve that are measured before it can be."""

    kind: Literal["none", "median", "wilcoxon"] = "none"
    warmup: Positive = 3


class Sweep(Section):
    """One sweep."""

    overrides: tuple[str, ...] = ()
    """What every trial changes in experiments/, in Hydra's words."""
    arms: Annotated[tuple[str, ...], Field(min_length=1)] = ("full",)
    seeds: Positive = 3
    confirm: Annotated[int, Field(ge=0)] = 3
    """Fresh seeds on which the winner and the two baselines are run again at the end."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Of the sampler."""
    sampler: Literal["tpe", "gp", "nsga2", "qmc", "random", "grid"] = "tpe"
    startup: Positive = 8
    """Trials before tpe and gp begin to learn from the others; random until then."""
    pruner: Pruner = Pruner()
    budget: Budget = Budget(trials=20)
    objectives: Annotated[tuple[str, ...], Field(min_length=1)] = ("in_domain",)
    space: Annotated[dict[str, Parameter], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, data: Any) -> Any:
        """`key: [a, b]` is short for choices; `objectives: in_domain` and `pruner: median` for the long forms."""
        if not isinstance(data, dict):
            return data
        data = dict(data)
        if isinstance(data.get("space"), dict):
            data["space"] = {
                k: {"choices": v} if isinstance(v, list) else v for k, v in data["space"].items()
            }
        if isinstance(data.get("pruner"), str):
            data["pruner"] = {"kind": data["pruner"]}
        for name in ("objectives", "arms", "overrides"):
            if isinstance(data.get(name), str):
                data[name] = [data[name]]
        return data

    @model_validator(mode="after")
    def _whole(self) -> Sweep:
        for where, names in (("space", self.keys), ("objectives", self.objectives), ("arms", self.arms)):
            twice = [name for name in names if names.count(name) > 1]
            if twice:
                raise ValueError(f"{where}: {twice[0]!r} is there twice")
        for objective in self.objectives:
            self._check_objective(objective)
        for name in (*self.keys, *(o.partition("=")[0] for o in self.overrides)):
            if name in OWN:
                raise ValueError(f"{name}: a sweep sets it by {OWN[name]!r}")
        if self.sampler == "nsga2" and self.startup < 2:
            raise ValueError(
                f"startup = {self.startup}: the population of nsga2, whose children have two parents; must be 2 or more"
            )
        if self.pruner.kind != "none" and len(self.objectives) > 1:
            raise ValueError("pruner: needs exactly one objective")
        if self.pruner.kind != "none" and self.goals[0][1] not in CURVES:
            raise ValueError(
                f"pruner: {self.objectives[0]} has no curve while a trial trains; only {', '.join(CURVES)} do"
            )
        return self

    def _check_objective(self, objective: str) -> None:
        arm, metric = self._goal(objective)
        if metric not in METRICS:
            raise ValueError(f"objectives: {metric!r}: {unknown(metric, list(METRICS))}")
        if arm not in self.arms:
            raise ValueError(f"objectives: arm {arm!r} of {objective!r}: {unknown(arm, list(self.arms))}")
        if "." not in objective and len(self.arms) > 1:
            raise ValueError(
                f"objectives: {objective!r}: with several arms name one, e.g. {self.arms[-1]}.{objective}"
            )

    def _goal(self, objective: str) -> tuple[str, str]:
        arm, dot, metric = objective.rpartition(".")
        return (arm, metric) if dot else (self.arms[0], objective)

    @property
    def goals(self) -> list[tuple[str, str]]:
        """(arm, metric) of every objective; the first decides which trial is the best."""
        return [self._goal(objective) for objective in self.objectives]

    def check_measured(self, config: Config) -> None:
        """Raise `ConfigError` for an objective that trials of `config` do not measure."""
        known = [*SETTINGS[config.judge.writes].titles, COST]
        for objective, (_, metric) in zip(self.objectives, self.goals, strict=True):
            if metric not in known:
                raise ConfigError(
                    f"objectives: {objective!r} is not measured where judge.writes = {config.judge.writes}; "
                    f"known: {', '.join(known)}"
                )

    @property
    def keys(self) -> list[str]:
        """Every key of the configuration that the space sets."""
        return [k for name, p in self.space.items() for k in (p.between if isinstance(p, Band) else (name,))]


def sign(metric: str) -> int:
    """+1 where more is better, -1 where less is."""
    return -1 if metric == COST else 1


def name_of(path: Path) -> str:
    """The sweep's name: that of its file. Raises `ConfigError` for one that cannot name a folder."""
    if not NAME.fullmatch(path.stem):
        raise ConfigError(
            f"{path}: a sweep is named by its file; use lower-case letters, digits, '-' and '_', e.g. thresholds.yaml"
        )
    return path.stem


def load(path: Path) -> Sweep:
    """The sweep that a file declares. Raises `ConfigError` listing every problem."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    if not path.is_file():
        raise ConfigError(f"{path}: no such file; examples are in experiments/sweep/")
    try:  # Hydra's reader, as for all of experiments/: it refuses a key that is there twice
        data = OmegaConf.to_container(OmegaConf.create(path.read_text()), resolve=False)
    except (YAMLError, UnicodeDecodeError, OmegaConfBaseException) as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from None
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: expected a mapping with `space`, found {type(data).__name__}")
    try:
        return Sweep.model_validate(data)
    except ValidationError as error:
        problems = dict.fromkeys(_explain(dict(item)) for item in error.errors())
        listed = "\n".join(f"  {problem}" for problem in problems)
        raise ConfigError(f"{path} is not a valid sweep:\n{listed}") from None


LEAVES = ("bool", "int", "float", "str")
"""Names that pydantic adds to the place of a value that may be one of several types."""


def _explain(item: dict[str, Any]) -> str:
    loc = [str(part) for part in item["loc"]]
    form = loc.pop(2) if loc[:1] == ["space"] and len(loc) > 2 else ""
    if form == "choices" and loc[2:3] == ["choices"]:  # the key that the short form leaves out
        del loc[2]
    message = item["msg"].removeprefix("Value error, ")
    if form and loc[-1] in LEAVES:
        loc.pop()
        if item["type"] != "finite_number":
            message = f"expected a number{', a word, true or false' if form == 'choices' else ''}"
    where = ".".join(loc)
    if item["type"] == "extra_forbidden":
        return f"{where}: {unknown(loc[-1], _known(item['loc']))}"
    if item["type"] == "missing":
        return f"{where}: missing"
    if not where:
        return message
    given = item["input"]
    plain = isinstance(given, (dict, list, BaseModel))
    return f"{where}: {message}" if plain else f"{where} = {given!r}: {message}"


def _known(loc: tuple[int | str, ...]) -> list[str]:
    """The keys of the section in which `loc` found an unknown one."""
    sections: dict[str, type[BaseModel]] = {
        "choices": Choices, "range": Range, "band": Band, "budget": Budget, "pruner": Pruner,
    }  # fmt: skip
    section = sections.get(str(loc[-2]), Sweep) if len(loc) > 1 else Sweep
    return list(section.model_fields)
