"""The declaration of a study: experiments/check/study.yaml, where every key is explained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from rlanything.checks.training import CEILING, EXPERT, Open, Point, Training
from rlanything.config import BASE, BASE_COOLED, LISTED, Config, Section
from rlanything.config.reading import validated
from rlanything.config.section import Share
from rlanything.core.errors import ConfigError, unknown
from rlanything.files.yaml_file import read_mapping
from rlanything.report.results.metrics import Metric, metrics_for

CONTROLS = (BASE, BASE_COOLED, CEILING, EXPERT)
"""What is measured beside the arms; names of files in the workspace's evaluation/."""


Least = Annotated[float, Field(gt=0)]


class Oracle(Section):
    """A judge of declared accuracy in place of the reward model."""

    accuracy: Share
    systematic: Share = 0.0
    """Share of its errors that all votes on equal questions have together."""

    @property
    def point(self) -> Point:
        """The same, as the ladder names it."""
        return Point(self.accuracy, self.systematic)


class Hypothesis(Section):
    """`arm` is above `over` in a metric, by any amount."""

    claim: Annotated[str, Field(pattern=r"^[^|\n\r]+$")]
    """What it says, in one sentence: a cell of a table."""
    arm: str
    over: str
    metric: str
    """Its name in evaluation/<arm>.json, e.g. in_domain or rm_process."""
    smallest: Least | None = None
    """The smallest difference that would matter, a share, or tasks for a count; null: as the study says."""


class Study(Training):
    """One study."""

    READING = frozenset({"hypotheses", "alpha", "smallest"})

    arms: Annotated[tuple[str, ...], LISTED, Field(min_length=1)]
    """Arms of the configuration, in the order in which they are trained."""
    oracles: Annotated[tuple[Oracle, ...], LISTED] = ()
    hypotheses: Annotated[dict[str, Hypothesis], Field(min_length=1)]
    alpha: Open = 0.05
    """Level of the tests, after Holm's correction over all hypotheses."""
    smallest: Least = 0.03
    """The smallest difference that would matter: a gain that is surely below it refutes a hypothesis."""

    @model_validator(mode="after")
    def _consistent(self) -> Study:
        for key, names in (("arms", self.arms), ("oracles", [point.arm for point in self.points])):
            twice = [name for name in names if list(names).count(name) > 1]
            if twice:
                raise ValueError(f"{key}: {twice[0]!r} is there twice")
        for name in self.arms:
            if name in CONTROLS:
                raise ValueError(f"arms: {name!r} is a control and no arm")
        for name, hypothesis in self.hypotheses.items():
            for key in ("arm", "over"):
                arm = getattr(hypothesis, key)
                if arm not in self.measured:
                    raise ValueError(
                        f"hypotheses.{name}.{key} = {arm!r}: {unknown(arm, sorted(self.measured))}"
                    )
            if hypothesis.arm == hypothesis.over:
                raise ValueError(f"hypotheses.{name}: {hypothesis.arm!r} is compared with itself")
        self._require_own_keys()
        return self

    @property
    def points(self) -> tuple[Point, ...]:
        """The oracles that judge."""
        return tuple(oracle.point for oracle in self.oracles)

    @property
    def trained(self) -> tuple[str, ...]:
        """Every arm that is trained, in this order."""
        return (*self.arms, *(point.arm for point in self.points))

    @property
    def measured(self) -> tuple[str, ...]:
        """Every arm and control."""
        left_out = {CEILING} if self.ceiling is None else set()
        left_out |= set() if self.expert else {EXPERT}
        return (*(name for name in CONTROLS if name not in left_out), *self.trained)

    def least(self, hypothesis: Hypothesis) -> float:
        """The smallest difference that would matter for a hypothesis."""
        return self.smallest if hypothesis.smallest is None else hypothesis.smallest

    def check(self, config: Config) -> None:
        """Raise `ConfigError` for an arm, a metric or a control that its configuration cannot have."""
        super().check(config)
        metrics = {metric.name: metric for metric in metrics_for(config)}
        for name, hypothesis in self.hypotheses.items():
            place = f"hypotheses.{name}"
            metric = metrics.get(hypothesis.metric)
            if metric is None:
                raise ConfigError(
                    f"{place}.metric = {hypothesis.metric!r}: {unknown(hypothesis.metric, metrics)}"
                )
            for arm in (hypothesis.arm, hypothesis.over):
                if why := self._why_unmeasured(arm, metric, config):
                    raise ConfigError(f"{place}: {arm!r} has no {metric.name}: {why}")
            self._check_smallest(place, hypothesis, metric)

    def _why_unmeasured(self, arm: str, metric: Metric, config: Config) -> str:
        """Why an arm or a control cannot have a metric; '' where it has it."""
        if arm == BASE_COOLED and config.evaluate.cooling is None:
            return "evaluate.cooling is null"
        if metric.is_success or arm == BASE:
            return ""
        if arm in CONTROLS:
            return "of this control only success is measured"
        oracle = any(point.arm == arm for point in self.points)
        return "the oracle judges there, and no reward model" if oracle and metric.is_share else ""

    def _check_smallest(self, place: str, hypothesis: Hypothesis, metric: Metric) -> None:
        """Raise `ConfigError` for a smallest difference that is not in the metric's unit."""
        if metric.is_share and self.least(hypothesis) >= 1:
            raise ConfigError(
                f"{place}: smallest = {self.least(hypothesis)}: must be below 1, a share: 3 points are 0.03"
            )
        if not metric.is_share and hypothesis.smallest is None:
            raise ConfigError(
                f"{place}.smallest: missing; {metric.name} is a count, and the study's is a share"
            )


def load_study(path: Path) -> Study:
    """The study that a file declares. Raises `ConfigError` listing every problem."""
    if not path.is_file():
        raise ConfigError(f"{path}: no such file; the project's own is experiments/check/study.yaml")
    return validated(Study, read_mapping(path), f"{path} is not a valid study")
