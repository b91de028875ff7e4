"""The whole experiment: tasks, training, evaluation, and what must hold between sections."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import Field, model_validator

from rlanything.config.algorithm import (
    AdaptationConfig,
    ArmConfig,
    JudgeConfig,
    JudgeSource,
    LearnConfig,
    RolloutConfig,
    SignalsConfig,
)
from rlanything.config.endpoints import NO_ENDPOINT, Endpoints
from rlanything.config.evaluation import (
    BASE,
    BASE_COOLED,
    CONTROLS,
    FOLDER_NAME,
    ORACLE,
    EvaluateConfig,
    Sampler,
    names_folder,
)
from rlanything.config.executor import ExecutorConfig
from rlanything.config.models import BootstrapConfig, ModelConfig
from rlanything.config.section import Section
from rlanything.config.tasks import TasksConfig
from rlanything.config.training import TrainConfig
from rlanything.core.errors import ConfigError, unknown
from rlanything.core.printable import safe

READ_LIVE = (".TransformersEngine", ".VllmEngine")
"""Engines that cannot sample while the model trains: one reads the trainer's weights, one needs its main thread."""
SEES = (".TransformersEngine", ".VllmEngine", ".VllmServers")
"""Engines that show pictures."""
_ALTERNATIVE = {"policy": "", "reward": ", or an endpoint in the reward model's or the judge's place"}
"""What a message says of another way to show a role pictures, after the engines or checkpoints that can."""


class Config(Section):
    """The whole experiment."""

    seed: Annotated[int, Field(ge=0, lt=1 << 63)]
    scale: str
    env: dict[str, Any]
    engine: dict[str, Any]
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

    # Validators run in the order in which they stand here; the first problem is the one that is told.

    @model_validator(mode="after")
    def _names_classes(self) -> Config:
        if "base_url" in self.engine or "engines.openai" in str(self.engine.get("_target_")):
            raise ValueError(f"engine = openai: {NO_ENDPOINT}")
        for key in ("env", "engine"):
            if "_target_" not in getattr(self, key):
                raise ValueError(
                    f"{key}._target_ is missing: name the class, e.g. envs.alfworld.family.AlfworldFamily"
                )
        return self

    @model_validator(mode="after")
    def _waits_for_environments(self) -> Config:
        limit, longest, own = self.rollout.timeout_s, self.executor.timeout_s, self.env.get("timeout", 0)
        ours = str(self.env["_target_"]).startswith(
            "envs."
        )  # a family of others may mean something else by it
        if ours and isinstance(own, int | float) and own > limit:
            raise ValueError(
                f"env.timeout = {own:g}: must be at most rollout.timeout_s = {limit:g}, which ends the episode first"
            )
        if longest <= limit:
            raise ValueError(
                f"executor.timeout_s = {longest:g}: must be above rollout.timeout_s = {limit:g}, or a worker whose "
                "environment hangs is ended before the episode is"
            )
        return self

    @model_validator(mode="after")
    def _fits_tests(self) -> Config:
        if self.judge.writes != "tests":  # this room is below rewards/, so `rewards.kind` cannot be asked
            return self
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
            if not arm.outcome:
                raise ValueError(
                    f"arms.{name}.outcome = False: with judge.writes = tests a reward always holds the pass rate"
                )
        return self

    @model_validator(mode="after")
    def _has_room(self) -> Config:
        """An embedded model's context has room for what it is to write."""
        room = math.inf if self.model.embedded is None else self.model.embedded.positions
        lengths = {"rollout": self.rollout.max_tokens, "judge": self.judge.max_tokens}
        for name, length in {**lengths, "adaptation": self.adaptation.max_tokens}.items():
            if length >= room:
                raise ValueError(
                    f"{name}.max_tokens = {length}: must be below model.embedded.positions = {room}"
                )
        return self

    @model_validator(mode="after")
    def _decodes_together(self) -> Config:
        batch = self.engine.get("max_batch", 1)  # the one argument that every engine has
        if not isinstance(batch, int) or isinstance(batch, bool) or batch < 1:
            raise ValueError(f"engine.max_batch = {batch!r}: must be a whole number of at least 1")
        return self

    @model_validator(mode="after")
    def _shows_pictures(self) -> Config:
        """What else must hold where a model is shown pictures. The model itself is looked at when it is loaded."""
        images, served = self.model.images, self.endpoints
        if images.any and self.judge.writes != "votes":
            role = "policy" if images.policy else "reward"
            raise ValueError(
                f"model.images.{role} = {getattr(images, role)}: does not go with judge.writes, which must be 'votes'; "
                "set either back"
            )
        own = {"policy": images.policy, "reward": 0 if served.reward else images.reward}
        judges = images.reward if set(self.evaluate.labellers) - {ORACLE, *served.judges} else 0
        # Judges are shown as many pictures as the reward model is.
        for role, shown in (*own.items(), ("reward", judges)):
            where = f"model.images.{role} = {shown}"
            if shown and not str(self.engine.get("_target_")).endswith(SEES):
                raise ValueError(
                    f"{where}: only engine=transformers, vllm and vllm_servers read pictures{_ALTERNATIVE[role]}"
                )
        for role, shown in own.items():
            if shown and self.model.embedded is not None:
                raise ValueError(
                    f"model.images.{role} = {shown}: embedded models read text alone. Use a checkpoint of Qwen2.5-VL "
                    f"or Qwen3-VL{_ALTERNATIVE[role]}, or 0"
                )
        return self

    @model_validator(mode="after")
    def _trains_low_rank(self) -> Config:
        """What must hold where LoRA trains a model. The checkpoint's own matrices are looked at when it is loaded."""
        for role, lora in self.learn.lora.items():
            sizes = self.model.embedded
            least = math.inf if sizes is None else min(sizes.matrix(name) for name in lora.targets)
            if lora.rank > least:
                raise ValueError(
                    f"learn.{role}.lora.rank = {lora.rank}: must be at most {least}, the smaller side of the smallest "
                    "of its targets (model.embedded)"
                )
        return self

    @model_validator(mode="after")
    def _samples_ahead(self) -> Config:
        """What must hold where a batch is sampled while another one trains."""
        engine = str(self.engine["_target_"])
        if self.train.staleness and engine.endswith(READ_LIVE):
            raise ValueError(
                f"train.staleness = {self.train.staleness}: {engine} samples in the trainer's process from what is "
                "being trained; needs an engine with weights of its own: engine=native or engine=vllm_servers"
            )
        return self

    @model_validator(mode="after")
    def _trains_arms(self) -> Config:
        for name, arm in self.arms.items():
            if not names_folder(name) or name in CONTROLS:
                raise ValueError(
                    f"arms.{safe(name)}: an arm names a folder: {FOLDER_NAME}, and not {BASE!r} or {BASE_COOLED!r}"
                )
            if self.judge_for(arm).is_oracle:
                self._check_oracle(name)
            if arm.reward_from is not None:
                self._check_source(name, arm.reward_from)
        return self

    @model_validator(mode="after")
    def _has_tasks(self) -> Config:
        if self.rollout.tasks > self.tasks.train:
            raise ValueError(
                f"rollout.tasks = {self.rollout.tasks}: must not exceed tasks.train = {self.tasks.train}"
            )
        return self

    @model_validator(mode="after")
    def _trains_no_endpoint(self) -> Config:
        trained = [name for name, arm in self.arms.items() if arm.train_reward]
        if self.endpoints.reward is not None and trained:
            raise ValueError(
                f"endpoints.reward.model = {self.endpoints.reward.model!r}: arms.{trained[0]}.train_reward = True, and "
                "an endpoint returns text, not token ids with log-probs, so it cannot be trained. Allowed: arms with "
                f"train_reward: false; leave out {', '.join(f'~arms.{name}' for name in trained)}"
            )
        return self

    @model_validator(mode="after")
    def _knows_judges(self) -> Config:
        for name in self.endpoints.judges:
            if name not in self.evaluate.judges:
                raise ValueError(
                    f"endpoints.judges.{name}: {unknown(name, self.evaluate.judges)} (evaluate.judges)"
                )
        return self

    def _check_oracle(self, name: str) -> None:
        """Raise `ValueError` where an arm that the oracle judges for is to train a reward model, or to take one."""
        for key in ("train_reward", "reward_from"):
            value = getattr(self.arms[name], key)
            if value:
                why = "which has nothing to train" if key == "train_reward" else "which is no reward model"
                raise ValueError(
                    f"arms.{name}.{key} = {value!r}: its judge is the oracle, {why}. Give the arm a model "
                    f"(arms.{name}.judge={{source: model}}), or leave it out (~arms.{name})"
                )

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

    @property
    def has_oracle(self) -> bool:
        """Whether the oracle judges in any arm."""
        return any(self.judge_for(arm).is_oracle for arm in self.arms.values())

    def judge_of(self, name: str) -> str | None:
        """The arm whose run holds the reward model that the arm `name` ends with; None: it is the bootstrap's.

        Raises `ConfigError` for an unknown name.
        """
        return name if self.arm(name).train_reward else self.arms[name].reward_from
