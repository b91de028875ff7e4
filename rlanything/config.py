"""The typed configuration: every number of the algorithm by name, checked before any work starts.

`params.yaml` is the composed configuration (Hydra groups in `experiments/`); `parse` turns it into `Config` or
raises `ConfigError` that names every bad key, its value, what is allowed and the nearest known name.
Defaults here are the paper's; what differs from the paper says so.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from rlanything.core.adaptation import Acceptance, AcceptanceRule
from rlanything.core.errors import ConfigError, unknown

BASE = "base"
"""Stands for an arm where results are named: the first policy and reward model, which never trained."""
ARM_NAME = re.compile(r"[^./\x00-\x1f][^/\x00-\x1f]{0,99}")
"""An arm names a folder."""
LISTED = Field(strict=False)
"""Marks a tuple, which YAML writes as a list. Its elements stay strict."""
Positive = Annotated[int, Field(gt=0)]
Rate = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]


def _has_target(section: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(section.get("_target_"), str):
        raise ValueError("_target_ is missing: name the class, e.g. lightning.pytorch.loggers.CSVLogger")
    return section


Named = Annotated[dict[str, Any], AfterValidator(_has_target)]
"""A class by `_target_`, with its arguments."""


class Section(BaseModel):
    """A part of the configuration: unknown keys refused, values immutable, no NaN, no value taken for another type."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False, strict=True
    )


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


class Architecture(Section):
    """Sizes of the tiny Qwen2 models that the bootstrap stage makes."""

    hidden: Positive = 128
    intermediate: Positive = 384
    layers: Positive = 2
    heads: Positive = 4
    kv_heads: Positive = 2
    vocab: Annotated[int, Field(ge=430)] = 1024
    """At least the bytes, their most frequent merges, the marks of a conversation, the numbers, and one phrase."""
    positions: Annotated[int, Field(gt=0, le=1 << 20)] = 4096

    @model_validator(mode="after")
    def _divides(self) -> Architecture:
        if self.hidden % (2 * self.heads):
            raise ValueError(
                f"heads = {self.heads}: hidden = {self.hidden} must be a multiple of twice as many, because a head has "
                f"an even size (e.g. hidden = {2 * self.heads * math.ceil(self.hidden / (2 * self.heads))})"
            )
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads = {self.kv_heads}: must divide heads = {self.heads}")
        return self

    @property
    def parameters(self) -> int:
        """Weights of a Qwen2 model, embeddings tied: attention, biases on q, k and v, SwiGLU, two norms a layer."""
        width = self.hidden
        kv = width // self.heads * self.kv_heads
        attention = 2 * width * width + 2 * width * kv + width + 2 * kv
        layer = attention + 3 * width * self.intermediate + 2 * width
        return self.vocab * width + self.layers * layer + width


class Checkpoint(Section):
    """A Hugging Face folder or hub name. For embedded models the folder that `bootstrap` writes."""

    path: str
    revision: str | None = None
    allow_pickle: bool = False
    """Whether weights may be pickles (`pytorch_model.bin`): reading one can run code. Safetensors cannot."""


class ModelConfig(Section):
    """The three models, their prompts, and the formats of their answers."""

    embedded: Architecture | None
    policy: Checkpoint
    reward: Checkpoint
    adapter: Checkpoint
    prompts: str
    action_format: Literal["verbatim", "boxed_index"] = "boxed_index"
    verdict_format: Literal["word", "boxed"] = "boxed"


class SupervisedConfig(Section):
    """One supervised warm start of an embedded model."""

    episodes: Positive
    steps: Positive
    batch: Positive = 32
    lr: Rate = 5e-3
    """AdamW: embeddings, norms and biases."""
    matrix_lr: Rate = 0.02
    """Muon: the hidden matrices."""
    context_weight: Share = 0.0
    """Loss weight of the tokens that the model only reads; the tokens that it writes have 1."""
    noise: Share = 0.0


class BootstrapConfig(Section):
    """Warm starts of the embedded models; ignored for real checkpoints."""

    policy: SupervisedConfig
    reward: SupervisedConfig
    adapter: SupervisedConfig
    min_mu: float = 1.05
    """The stage fails when the first reward model's mu = p+ + p- is below this (Theorem 1 needs mu > 1)."""
    min_ut: Share = 0.05
    """The same for a reward model that writes tests: the share of them that must be right."""


class RolloutConfig(Section):
    """Alg. 1, acting: tasks an iteration, rollouts of each task, and the length of an episode."""

    tasks: Positive = 16
    rollouts: Annotated[int, Field(ge=2)] = 8
    max_steps: Positive = 40
    temperature: Rate = 0.8
    decoding: Literal["free", "constrained"] = "free"
    max_tokens: Positive = 512
    timeout_s: Rate = 60.0


class JudgeConfig(Section):
    """The generative reward model: m votes a step, or m unit tests a task."""

    writes: Literal["votes", "tests"] = "votes"
    m: Positive = 3
    temperature: Rate = 1.0
    max_tokens: Positive = 512
    max_invalid: Share = 0.9
    """A run stops with an error when more than this share of an iteration's replies has no verdict, or no test."""


class SignalsConfig(Section):
    """Eq. 1, Eq. 2 and the data filters."""

    lambda_: Annotated[float, Field(ge=0, alias="lambda")] = 1.0
    advantage_scale: Literal["step", "task"] = "step"
    policy_min: Share = 0.0
    policy_max: Share = 1.0
    reward_min: Share = 0.2
    reward_max: Share = 0.8
    reward_balance: Literal["none", "outcome"] = "outcome"
    """`none` is the paper; `outcome` lets steps of successes and of failures count the same in the RM's loss."""

    @model_validator(mode="after")
    def _ordered(self) -> SignalsConfig:
        for low, high in (("policy_min", "policy_max"), ("reward_min", "reward_max")):
            ordered(self, low, high, strict=False)
        return self


class AdaptationConfig(Section):
    """Section 3 of the paper: when a task is rewritten and when the rewrite is accepted."""

    alpha_low: Share = AcceptanceRule.alpha_low
    alpha_high: Share = AcceptanceRule.alpha_high
    acceptance: Acceptance = AcceptanceRule.acceptance
    critic: Literal["extractive", "model"] = "model"
    temperature: Rate = 1.0
    max_tokens: Positive = 512
    attempts: Positive = 2
    """Replies sampled for a slot before its proposal is given up as invalid for this iteration."""

    @model_validator(mode="after")
    def _ordered(self) -> AdaptationConfig:
        ordered(self, "alpha_low", "alpha_high", strict=True)
        return self

    @property
    def rule(self) -> AcceptanceRule:
        """The band and the acceptance rule of this section."""
        return AcceptanceRule(self.alpha_low, self.alpha_high, self.acceptance)


class OptimizerConfig(Section):
    """AdamW for one model."""

    lr: Rate = 1e-6
    betas: Annotated[tuple[Share, Share], LISTED] = (0.9, 0.999)
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    clip_norm: Rate = 1.0


class LearnConfig(Section):
    """Section 2 of docs/paper_map.md: the clipped surrogate and its weights."""

    policy: OptimizerConfig = OptimizerConfig()
    reward: OptimizerConfig = OptimizerConfig()
    updates: Positive = 4
    epsilon: Rate = 0.2
    beta: Annotated[float, Field(ge=0)] = 0.01
    kl_reference: Literal["start_of_step", "base"] = "start_of_step"
    loss_weight: Literal["token", "step", "trajectory"] = "step"
    importance: Literal["recorded", "recomputed"] = "recorded"
    importance_cap: Rate = 2.0
    micro_batch_tokens: Positive = 16384


class ArmConfig(Section):
    """One row of the ablation: switches, not forks of the code."""

    outcome: bool = True
    step_votes: bool
    train_reward: bool
    adapt: bool
    reward_from: str | None = None
    """Arm whose trained reward model judges here (for `step_only`); None: the bootstrap's."""

    @model_validator(mode="after")
    def _sensible(self) -> ArmConfig:
        if not (self.outcome or self.step_votes):
            raise ValueError("an arm needs outcome or step_votes: without both there is no reward")
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
    """Where the models train; the samplers of those models follow. `native` samples on the CPU and needs `cpu`."""
    devices: Positive = 1
    save_rollouts: bool = True
    loggers: dict[str, Named] = {}
    """Lightning loggers by a name of one's own; they change no result."""
    callbacks: dict[str, Named] = {}
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


def ordered(section: BaseModel, low: str, high: str, *, strict: bool) -> None:
    """Raise `ValueError` unless `low` < `high` (<= when not strict)."""
    a, b = getattr(section, low), getattr(section, high)
    if a > b or (strict and a == b):
        raise ValueError(f"{low} = {a} must be {'below' if strict else 'at most'} {high} = {b}")


def parse(data: Mapping[str, Any]) -> Config:
    """`Config` from a plain mapping. Raises `ConfigError` listing every problem."""
    try:
        return Config.model_validate(dict(data))
    except ValidationError as error:
        problems = [_explain(dict(item)) for item in error.errors()]
        raise ConfigError(
            "the configuration is not valid:\n" + "\n".join(f"  {p}" for p in problems)
        ) from None


def load(path: Path) -> Config:
    """`Config` from a YAML file such as params.yaml. Raises `ConfigError`."""
    from rlanything.files.yaml_file import read_mapping

    if not path.exists():
        raise ConfigError(f"{path}: no such file; write it with `rlanything config write`")
    data = read_mapping(path)
    try:
        return parse(data)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _explain(item: dict[str, Any]) -> str:
    loc = item["loc"]
    where = ".".join(str(part) for part in loc) or "configuration"
    if item["type"] == "extra_forbidden":
        return f"{where}: {unknown(str(loc[-1]), _known(loc[:-1]))}"
    if item["type"] == "missing":
        return f"{where}: missing"
    message = item["msg"].removeprefix("Value error, ")
    given = item["input"]
    if isinstance(given, (dict, BaseModel)):
        return f"{where}: {message}"
    if item["type"] == "float_type" and isinstance(given, str) and re.fullmatch(r"[+-]?\d+e[+-]?\d+", given):
        message += f"; in YAML it is written {given.replace('e', '.0e')}"
    return f"{where} = {_shown(given)}: {message}"


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 200


def _shown(value: Any) -> str:
    """A value for a message; files may hold very long ones."""
    if isinstance(value, int) and abs(value) >= 1 << 128:
        return f"a number of {value.bit_length()} bits"
    text = _SHORT.repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _known(loc: tuple[int | str, ...]) -> list[str]:
    """Field names (as written in YAML) of the section at `loc`."""
    section: type[BaseModel] = Config
    for part in loc:
        found = section.model_fields.get(str(part))
        if found is None:  # a name inside `arms`
            continue
        section = next(s for s in _sections(found.annotation))
    return [f.alias or name for name, f in section.model_fields.items()]


def _sections(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    arguments = getattr(annotation, "__args__", ())
    return [section for argument in arguments for section in _sections(argument)]
