"""The whole experiment: its sections, and what follows from several of them.

`agreement` says what must hold between sections.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from rlanything.config.agreement import CHECKS
from rlanything.config.algorithm import (
    AdaptationConfig,
    ArmConfig,
    JudgeConfig,
    JudgeSource,
    LearnConfig,
    RolloutConfig,
    SignalsConfig,
)
from rlanything.config.endpoints import Endpoints
from rlanything.config.evaluation import EvaluateConfig, Sampler
from rlanything.config.executor import ExecutorConfig
from rlanything.config.models import BootstrapConfig, Checkpoint, ModelConfig
from rlanything.config.section import Arguments, Precision, Section
from rlanything.config.tasks import TasksConfig
from rlanything.config.training import TrainConfig
from rlanything.core.errors import ConfigError, unknown


class Config(Section):
    """The whole experiment."""

    seed: Annotated[int, Field(ge=0, lt=1 << 63)]
    scale: str
    env: Arguments
    engine: Arguments
    tasks: TasksConfig
    model: ModelConfig
    endpoints: Endpoints = Endpoints()
    bootstrap: BootstrapConfig
    rollout: RolloutConfig
    judge: JudgeConfig
    signals: SignalsConfig
    adaptation: AdaptationConfig
    learn: LearnConfig
    arms: dict[str, ArmConfig]
    train: TrainConfig
    evaluate: EvaluateConfig
    executor: ExecutorConfig = ExecutorConfig()

    @model_validator(mode="after")
    def _agrees(self) -> Config:
        for check in CHECKS:
            check(self)
        return self

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

    def asking(self, **changes: float) -> Config:
        """The configuration with other judge's replies: `m`, `temperature` or `max_tokens`."""
        return self.model_copy(update={"judge": self.judge.model_copy(update=changes)})

    def rolling_out(self, policy: Sampler) -> Config:
        """The configuration with the temperature and the longest reply of another policy, where it has its own."""
        return self.model_copy(update={"rollout": self.rollout.model_copy(update=policy.sampling)})

    def judge_for(self, arm: ArmConfig) -> JudgeSource:
        """Who judges in an arm: its own `judge`, or the experiment's."""
        return self.judge if arm.judge is None else arm.judge

    def asks_model(self, arm: ArmConfig) -> bool:
        """Whether the arm's training asks a reward model for its replies."""
        return arm.step_votes and not self.judge_for(arm).is_oracle

    def in_one_process(self) -> Config:
        """The configuration with everything in the process that asks, one seed after the other; the same results."""
        alone = self.train.model_copy(update={"workers": 1})
        return self.model_copy(update={"train": alone, "executor": ExecutorConfig()})

    @property
    def proposer(self) -> str:
        """The name of the model that rewrites tasks."""
        return self.model.adapter.path if self.endpoints.adapter is None else self.endpoints.adapter.model

    def precision(self, name: str) -> Precision:
        """The number formats of the model `name`: those of its own, where `policy` or `reward` has them."""
        return self.learn.precisions.get(name, self.train.precision)

    def context(self, positions: int) -> int:
        """The most tokens of a prompt with its reply, of a checkpoint with so many positions."""
        limit: int | None = self.engine.get("context")
        return positions if limit is None else min(positions, limit)

    @property
    def lora_bases(self) -> dict[str, Checkpoint]:
        """`policy` and `reward`, those that LoRA trains -> what their frozen weights are read from."""
        return {role: getattr(self.model, role) for role in self.learn.lora}

    @property
    def has_oracle(self) -> bool:
        """Whether the oracle judges in any arm."""
        return any(self.judge_for(arm).is_oracle for arm in self.arms.values())

    def judge_of(self, name: str) -> str | None:
        """The arm whose run holds the reward model that the arm `name` ends with; None: it is the bootstrap's.

        Raises `ConfigError` for an unknown name.
        """
        return name if self.arm(name).train_reward else self.arms[name].reward_from
