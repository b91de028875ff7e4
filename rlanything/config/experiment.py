"""The whole experiment: tasks, training, evaluation, and what must hold between sections."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from rlanything.config.algorithm import (
    AdaptationConfig,
    ArmConfig,
    JudgeConfig,
    LearnConfig,
    RolloutConfig,
    SignalsConfig,
)
from rlanything.config.models import BootstrapConfig, ModelConfig
from rlanything.config.section import Named, Positive, Rate, Section
from rlanything.core.errors import ConfigError, unknown

BASE = "base"
"""Stands for an arm where results are named: the first policy and reward model, which never trained."""
ARM_NAME = re.compile(r"[^./\x00-\x1f][^/\x00-\x1f]{0,99}")
"""An arm names a folder."""


class TasksConfig(Section):
    """How many tasks each split holds, and where those to train on come from."""

    train: Positive
    in_domain: Positive
    out_of_domain: Positive
    reward_panel: Positive
    start: str | None = None
    """A task buffer (.jsonl) whose current tasks are trained on; None: the environment makes them."""
    start_digest: str | None = None
    """The digest of that buffer."""

    @model_validator(mode="after")
    def _named(self) -> TasksConfig:
        if (self.start is None) != (self.start_digest is None):
            raise ValueError(
                f"start = {self.start!r} and start_digest = {self.start_digest!r} belong together; "
                "`rlanything buffer import` prints both"
            )
        return self


class TrainConfig(Section):
    """How long, and how many seeds of each arm run side by side."""

    iterations: Positive
    seeds: Positive = 1
    workers: Positive = 2
    """Processes at once inside a stage; does not change any result."""
    precision: Literal["32-true", "bf16-mixed", "bf16-true"] = "32-true"
    strategy: str = "auto"
    accelerator: Literal["cpu", "auto", "cuda", "mps"] = "cpu"
    """Where all models lie, in every stage. `native` samples on the CPU and needs `cpu`."""
    devices: Positive = 1
    save_rollouts: bool = True
    loggers: dict[str, Named] = Field(default_factory=dict)
    """Lightning loggers by a name of one's own; they change no result."""
    callbacks: dict[str, Named] = Field(default_factory=dict)
    """Lightning callbacks; they may change results."""


class EvaluateConfig(Section):
    """How the panels are measured."""

    temperature: Rate = 0.8
    max_steps: Positive = 60
    repeats: Positive = 3
    votes: Positive = 3
    reward_rollouts: Positive = 16
    every: Positive = 10
    curve_tasks: Positive = 32


class Config(Section):
    """The whole experiment."""

    seed: Annotated[int, Field(ge=0, lt=1 << 63)]
    scale: str
    env: dict[str, Any]
    engine: dict[str, Any]
    tasks: TasksConfig
    model: ModelConfig
    bootstrap: BootstrapConfig
    rollout: RolloutConfig
    judge: JudgeConfig
    signals: SignalsConfig
    adaptation: AdaptationConfig
    learn: LearnConfig
    arms: dict[str, ArmConfig]
    train: TrainConfig
    evaluate: EvaluateConfig

    @model_validator(mode="after")
    def _whole(self) -> Config:
        for key in ("env", "engine"):
            if "_target_" not in getattr(self, key):
                raise ValueError(
                    f"{key}._target_ is missing: name the class, e.g. envs.alfworld.family.AlfworldFamily"
                )
        if self.judge.writes == "tests":
            if self.model.action_format != "verbatim":
                raise ValueError(
                    f"model.action_format = {self.model.action_format!r}: with judge.writes = tests the reply is the "
                    "answer; must be verbatim (and model.prompts a folder that asks for programs, as "
                    "experiments/prompts/coding does)"
                )
            for name, arm in self.arms.items():
                if arm.train_reward and not arm.step_votes:
                    raise ValueError(
                        f"arms.{name}.train_reward = True: without step_votes no tests are written that could train it"
                    )
                if not arm.outcome:
                    raise ValueError(
                        f"arms.{name}.outcome = False: with judge.writes = tests a reward always holds the pass rate"
                    )
        self._check_lengths()
        batch = self.engine.get("max_batch", 1)  # the one argument that every engine has
        if not isinstance(batch, int) or isinstance(batch, bool) or batch < 1:
            raise ValueError(f"engine.max_batch = {batch!r}: must be a whole number of at least 1")
        for name, arm in self.arms.items():
            if not ARM_NAME.fullmatch(name) or name == BASE:
                raise ValueError(
                    f"arms.{name}: an arm names a folder: 100 characters at most, no /, no . at the start, and not "
                    f"{BASE!r}"
                )
            if arm.reward_from is not None and arm.reward_from not in self.arms:
                raise ValueError(
                    f"arms.{name}.reward_from = {arm.reward_from!r}: {unknown(arm.reward_from, list(self.arms))}"
                )
        if self.rollout.tasks > self.tasks.train:
            raise ValueError(
                f"rollout.tasks = {self.rollout.tasks}: must not exceed tasks.train = {self.tasks.train}"
            )
        return self

    def _check_lengths(self) -> None:
        """Raise `ValueError` where an embedded model's context has no room for what it is to write."""
        room = math.inf if self.model.embedded is None else self.model.embedded.positions
        lengths = {"rollout": self.rollout.max_tokens, "judge": self.judge.max_tokens}
        for name, length in {**lengths, "adaptation": self.adaptation.max_tokens}.items():
            if length >= room:
                raise ValueError(
                    f"{name}.max_tokens = {length}: must be below model.embedded.positions = {room}"
                )

    def named(self) -> dict[str, dict[str, Any]]:
        """The sections that name a class by `_target_`, by their place."""
        trackers = {"loggers": self.train.loggers, "callbacks": self.train.callbacks}
        return {
            "env": self.env,
            "engine": self.engine,
            **{
                f"train.{kind}.{key}": item for kind, found in trackers.items() for key, item in found.items()
            },
        }

    def arm(self, name: str) -> ArmConfig:
        """The arm called `name`. Raises `ConfigError` with the nearest name."""
        if name not in self.arms:
            raise ConfigError(f"arm {name!r}: {unknown(name, list(self.arms))}")
        return self.arms[name]
