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
from rlanything.config.models import BootstrapConfig, Checkpoint, ModelConfig
from rlanything.config.section import Named, Positive, Section, Temperature
from rlanything.core.errors import ConfigError, unknown

BASE = "base"
"""Stands for an arm where results are named: the first policy and reward model, which never trained."""
ORACLE = "oracle"
"""Stands for a judge where labels are named: the environment knows which steps are good."""
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
    workers: Positive = 1
    """Processes at once inside a stage; does not change any result."""
    precision: Literal["32-true", "bf16-mixed", "bf16-true"] = "bf16-mixed"
    strategy: str = "auto"
    accelerator: Literal["cpu", "auto", "cuda", "mps"] = "cpu"
    """Where all models lie, in every stage. `native` samples on the CPU and needs `cpu`."""
    devices: Positive = 1
    save_rollouts: bool = True
    loggers: dict[str, Named] = Field(default_factory=dict)
    """Lightning loggers by a name of one's own; they change no result."""
    callbacks: dict[str, Named] = Field(default_factory=dict)
    """Lightning callbacks; they may change results."""


class LabelJudge(Checkpoint):
    """A model whose votes label the steps that the reward model is measured on: the majority of `votes`."""

    votes: Positive = 8
    temperature: Temperature | None = None
    """Of its sampling; None: `judge.temperature`."""
    max_tokens: Positive | None = None
    """The longest vote; None: `judge.max_tokens`."""
    prompts: str | None = None
    """A folder of prompt templates; None: `model.prompts`."""


class EvaluateConfig(Section):
    """How the panels are measured."""

    temperature: Temperature = 0.8
    max_steps: Positive = 60
    repeats: Positive = 3
    votes: Positive = 3
    reward_rollouts: Positive = 16
    reward_policy: Checkpoint | None = None
    """Whose trajectories the reward model is measured on; None: the untrained policy's."""
    labels: Literal["oracle", "judge"] = "oracle"
    judges: dict[str, LabelJudge] = Field(default_factory=dict)
    every: Positive = 5
    curve_tasks: Positive = 140
    curve_rollouts: Positive = 2
    solver: Checkpoint | None = None
    """Who shows that accepted tasks can be solved; None: the environment's own expert, where it has one."""
    solver_tries: Positive = 16

    @model_validator(mode="after")
    def _named(self) -> EvaluateConfig:
        for name in self.judges:
            if not ARM_NAME.fullmatch(name) or name == ORACLE:
                raise ValueError(
                    f"judges.{name}: a judge names a file: 100 characters at most, no /, no . at the start, and not "
                    f"{ORACLE!r}"
                )
        if self.labels == "judge" and not self.judges:
            raise ValueError(
                "labels = 'judge': judges is empty; declare one, e.g. judges.strong.path = Qwen/Qwen3-32B"
            )
        return self

    @property
    def labellers(self) -> tuple[str, ...]:
        """Who labels the steps that the reward model is measured on; the tables of the report show the first one."""
        return tuple(self.judges) if self.labels == "judge" else (ORACLE,)

    @property
    def own_panel(self) -> bool:
        """Whether the final measurement has a reward panel of its own; if not, it is the bootstrap's."""
        return self.labels == "judge" or self.reward_policy is not None


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
            if self.evaluate.labels != ORACLE:
                raise ValueError(
                    f"evaluate.labels = {self.evaluate.labels!r}: with judge.writes = tests programs are run and "
                    "nobody judges them; must be oracle"
                )
            if self.model.action_format != "verbatim":
                raise ValueError(
                    f"model.action_format = {self.model.action_format!r}: with judge.writes = tests the reply is the "
                    "answer; must be verbatim (and model.prompts a folder that asks for programs, as "
                    "experiments/prompts/paper/coding does)"
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
            if arm.reward_from is not None:
                self._check_source(name, arm.reward_from)
        if self.rollout.tasks > self.tasks.train:
            raise ValueError(
                f"rollout.tasks = {self.rollout.tasks}: must not exceed tasks.train = {self.tasks.train}"
            )
        return self

    def _check_source(self, name: str, source: str) -> None:
        """Raise `ValueError` unless the arm `source` trains a reward model, not with one that comes from `name`."""
        where = f"arms.{name}.reward_from = {source!r}"
        if source not in self.arms:
            raise ValueError(f"{where}: {unknown(source, list(self.arms))}")
        if not self.arms[source].train_reward:
            trained = [other for other, arm in self.arms.items() if arm.train_reward and other != name]
            raise ValueError(
                f"{where}: trains no reward model (train_reward); these do: {', '.join(trained) or 'none'}"
            )
        seen, following = [name], self.arms[name].reward_from
        while following in self.arms and following not in seen:
            seen.append(following)
            following = self.arms[following].reward_from
        if following == name:
            raise ValueError(f"{where}: in a circle: {' -> '.join([*seen, name])}")

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

    def judge_of(self, name: str) -> str | None:
        """The arm whose run holds the reward model that the arm `name` ends with; None: it is the bootstrap's.

        Raises `ConfigError` for an unknown name.
        """
        return name if self.arm(name).train_reward else self.arms[name].reward_from
