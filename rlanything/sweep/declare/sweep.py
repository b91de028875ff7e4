"""The declaration of a sweep. docs/sweeps.md explains the file format; experiments/sweep/ has commented examples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from rlanything.config import LISTED, Config, Positive, Section
from rlanything.config.sources import paper_value
from rlanything.core.errors import ConfigError, unknown
from rlanything.rewards.kind import name_of
from rlanything.sweep.declare.metrics import has_curve, is_of_reward_model, measured_metrics
from rlanything.sweep.declare.override import SET_OTHERWISE, written
from rlanything.sweep.declare.parameters import Band, Parameter, Value
from rlanything.sweep.declare.samplers import SAMPLERS

PAPER: Mapping[str, Value] = {
    **{key: paper_value(key) for key in ("signals.lambda", "adaptation.alpha_low", "adaptation.alpha_high")},
    "signals.reward_lambda": paper_value("signals.lambda"),
}
"""The paper's setting of what sweeps vary; trial 0 of every sweep. A key that is null follows another one."""


class Budget(Section):
    """When no further trial is started: after `trials`, or once they have together taken `minutes`."""

    trials: Annotated[int, Field(ge=2)] | None = None
    minutes: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _check_any(self) -> Budget:
        if self.trials is None and self.minutes is None:
            raise ValueError("give trials, minutes or both")
        return self


class Pruner(Section):
    """When a trial is given up early. `warmup`: points of its curve that are measured first."""

    kind: Literal["none", "median", "wilcoxon"] = "none"
    warmup: Positive = 3


def _check_sampler(name: str) -> str:
    if name not in SAMPLERS:
        raise ValueError(unknown(name, SAMPLERS))
    return name


class Sweep(Section):
    """One sweep."""

    overrides: Annotated[tuple[str, ...], LISTED] = ()
    """Hydra overrides that every trial has."""
    arms: Annotated[tuple[str, ...], LISTED, Field(min_length=1)] = ("full",)
    seeds: Positive = 3
    confirm: Annotated[int, Field(ge=0)] = 3
    """Fresh seeds on which the winner and both baselines are run again at the end."""
    seed: Annotated[int, Field(ge=0)] = 0
    """The sampler's."""
    sampler: Annotated[str, AfterValidator(_check_sampler)] = "tpe"
    startup: Positive = 8
    """Random trials before tpe and gp learn from the finished ones; the population of nsga2."""
    pruner: Pruner = Pruner()
    budget: Budget = Budget(trials=20)
    objectives: Annotated[tuple[str, ...], LISTED, Field(min_length=1)] = ("in_domain",)
    last_evaluations: Annotated[int, Field(ge=0)] = 0
    """A trial's shares are the mean of so many last points of its learning curves; 0: the final models' on the whole
    panels."""
    space: Annotated[dict[str, Parameter], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _expand_short_forms(cls, data: Any) -> Any:
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
    def _check_names(self) -> Sweep:
        for where, names in (("space", self.keys), ("objectives", self.objectives), ("arms", self.arms)):
            twice = [name for name in names if names.count(name) > 1]
            if twice:
                raise ValueError(f"{where}: {twice[0]!r} is there twice")
        for objective in self.objectives:
            self._check_objective(objective)
        for name in (*self.keys, *(o.partition("=")[0] for o in self.overrides)):
            if name in SET_OTHERWISE:
                raise ValueError(f"{name}: a sweep sets it by {SET_OTHERWISE[name]!r}")
        return self

    @model_validator(mode="after")
    def _check_search(self) -> Sweep:
        sampler = SAMPLERS[self.sampler]
        if sampler.every_point and "budget" in self.model_fields_set and self.budget.trials is not None:
            raise ValueError(
                f"budget.trials = {self.budget.trials}: sampler {self.sampler} runs every point of the space once; "
                "leave it out, limit the time with budget.minutes, or take another sampler"
            )
        least = sampler.least_startup
        if self.startup < least:
            raise ValueError(f"startup = {self.startup}: sampler {self.sampler} needs {least} or more")
        if self.pruner.kind != "none" and len(self.objectives) > 1:
            raise ValueError("pruner: needs exactly one objective")
        if self.pruner.kind != "none" and not has_curve(self.goals[0][1]):
            raise ValueError(
                f"pruner: {self.objectives[0]} has no curve during training; the shares have one"
            )
        return self

    def _check_objective(self, objective: str) -> None:
        arm, _ = self._goal(objective)
        if arm not in self.arms:
            raise ValueError(f"objectives: arm {arm!r} of {objective!r}: {unknown(arm, self.arms)}")
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

    @property
    def measured_by(self) -> str:
        """What a trial's shares are, in words."""
        last = self.last_evaluations
        return (
            f"mean of the last {last} evaluations of the learning curve"
            if last
            else "final models on the panels"
        )

    @property
    def keys(self) -> list[str]:
        """Every key of the configuration that the space sets."""
        return [k for name, p in self.space.items() for k in (p.between if isinstance(p, Band) else (name,))]

    def check_measured(self, config: Config) -> None:
        """Raise `ConfigError` for an objective that trials of `config` do not measure, or not often enough."""
        known = measured_metrics(config)
        for objective, (arm, metric) in zip(self.objectives, self.goals, strict=True):
            if metric not in known:
                raise ConfigError(
                    f"objectives: {objective!r} is not measured where judge.writes = {name_of(config)} and the "
                    f"panels are {', '.join(config.tasks.panels)}: {unknown(metric, known)}"
                )
            if is_of_reward_model(metric) and config.judge_for(config.arm(arm)).is_oracle:
                raise ConfigError(
                    f"objectives: {objective!r} is not measured: the judge of {arm} is the oracle, which is no model"
                )
        if self.last_evaluations:
            self._check_curves(config)

    def _check_curves(self, config: Config) -> None:
        """Raise `ConfigError` where the curves of an objective have too few points after the start of training."""
        every, iterations = config.evaluate.every, config.train.iterations
        points = -(-iterations // every)
        if points < self.last_evaluations:
            raise ConfigError(
                f"last_evaluations = {self.last_evaluations}: the curves have {points} points after the start "
                f"(train.iterations = {iterations}, evaluate.every = {every})"
            )
        for objective, (arm, metric) in zip(self.objectives, self.goals, strict=True):
            if is_of_reward_model(metric) and not config.arm(arm).train_reward:
                raise ConfigError(
                    f"objectives: {objective!r} has no curve: {arm} does not train its reward model (last_evaluations)"
                )


OF_A_TRIAL = ("train.seeds", "train.workers", "train.save_rollouts")
"""Keys that say how much is trained at once and kept in a sweep; a default has its own."""


def as_default(sweep: Sweep, sets: Mapping[str, Value]) -> list[str]:
    """The Hydra overrides that give a project the setting of a trial."""
    return _of_a_project(hydra_overrides(sweep, sets, sweep.seeds))


def own_overrides(sweep: Sweep) -> list[str]:
    """Those of `as_default` that the sweep has for all of its trials."""
    return _of_a_project(sweep.overrides)


def _of_a_project(overrides: Iterable[str]) -> list[str]:
    return [o for o in overrides if o.partition("=")[0].lstrip("+") not in OF_A_TRIAL]


def hydra_overrides(sweep: Sweep, sets: Mapping[str, Value], seeds: int) -> list[str]:
    """The Hydra overrides of a trial that sets `sets` and trains `seeds` seeds."""
    own = [f"train.seeds={seeds}", "train.workers=1"]
    return [*sweep.overrides, *own, *(f"{key}={written(value)}" for key, value in sets.items())]
