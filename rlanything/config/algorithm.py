"""The numbers of the algorithm: acting, judging, signals, adaptation, learning, and the arms that switch them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from rlanything.config.section import LISTED, Positive, Precision, Rate, Section, Share, ordered
from rlanything.core.adaptation import Acceptance, AcceptanceRule
from rlanything.core.errors import unknown
from rlanything.core.printable import safe


class RolloutConfig(Section):
    """Alg. 1, acting: tasks an iteration, rollouts of each task, and the length of an episode."""

    tasks: Positive = 16
    rollouts: Annotated[int, Field(ge=2)] = 8
    max_steps: Positive = 40
    temperature: Rate = 0.8
    decoding: Literal["free", "constrained"] = "free"
    max_tokens: Positive = 2000
    timeout_s: Rate = 60.0


class JudgeSource(Section):
    """Who judges: the generative reward model, or the environment's oracle with declared errors."""

    source: Literal["model", "oracle"] = "model"
    accuracy: Share = 1.0
    """Of the oracle: the probability that a vote, or a written test, is right."""
    systematic: Share = 0.0
    """Of the oracle: the share of its errors that all m votes on equal questions have together."""

    @model_validator(mode="after")
    def _of_the_oracle(self) -> JudgeSource:
        for name in ("accuracy", "systematic"):
            value = getattr(self, name)
            if self.source == "model" and value != type(self).model_fields[name].default:
                raise ValueError(
                    f"{name} = {value}: only the oracle has declared errors; needs source = 'oracle'"
                )
        return self

    @property
    def is_oracle(self) -> bool:
        """Whether the environment judges, so that there is no reward model."""
        return self.source == "oracle"


class JudgeConfig(JudgeSource):
    """The judge's replies: m votes a step, or m unit tests a task."""

    writes: Literal["votes", "tests"] = "votes"
    m: Positive = 3
    temperature: Rate = 0.8
    max_tokens: Positive = 4000
    max_invalid: Share = 0.9
    """A run stops with an error when more than this share of an iteration's replies has no verdict, or no test."""


class SignalsConfig(Section):
    """Eq. 1, Eq. 2 and the data filters."""

    lambda_: Annotated[float, Field(ge=0, alias="lambda")] = 1.0
    """Weight of the mean vote in the policy's reward (Eq. 1)."""
    reward_lambda: Annotated[float, Field(ge=0)] | None = None
    """The same weight in the R that the reward model's reward is made from (Eq. 2); None: `lambda`."""
    written: Literal["right", "all"] = "right"
    """Which written tests count in a program's reward: those that all right programs pass, or all."""
    advantage_scale: Literal["step", "task"] = "step"
    policy_min: Share = 0.0
    policy_max: Share = 1.0
    reward_min: Share = 0.2
    reward_max: Share = 0.8
    reward_balance: Literal["none", "outcome"] = "none"
    """`outcome` lets steps of successes and of failures of an iteration weigh the same in the RM's loss, before each of
    its updates is scaled to a weight of 1. It changes nothing where the RM writes tests."""

    @model_validator(mode="after")
    def _ordered(self) -> SignalsConfig:
        for low, high in (("policy_min", "policy_max"), ("reward_min", "reward_max")):
            ordered(self, low, high, strict=False)
        return self

    @property
    def consistency_lambda(self) -> float:
        """The lambda of Eq. 2: `reward_lambda`, or `lambda` where that is None."""
        return self.lambda_ if self.reward_lambda is None else self.reward_lambda


class AdaptationConfig(Section):
    """Section 2.4 of the paper: when a task is rewritten and when the rewrite is accepted."""

    alpha_low: Share = AcceptanceRule.alpha_low
    alpha_high: Share = AcceptanceRule.alpha_high
    acceptance: Acceptance = AcceptanceRule.acceptance
    critic: Literal["extractive", "model"] = "model"
    marked: Literal["all", "any"] = "all"
    """Which steps the critic is told are wrong: those that all valid votes, or any vote, call wrong."""
    critic_stages: Literal[1, 2] = 1
    """1: a summary of each failed rollout. 2: first one of each of its marked steps, then of the rollout."""
    temperature: Rate = 0.8
    max_tokens: Positive = 8192
    attempts: Annotated[int, Field(gt=0, le=1000)] = 8
    """Replies sampled for a slot before its proposal is given up as invalid for this iteration."""

    @model_validator(mode="after")
    def _ordered(self) -> AdaptationConfig:
        ordered(self, "alpha_low", "alpha_high", strict=True)
        return self

    @property
    def rule(self) -> AcceptanceRule:
        """The band and the acceptance rule of this section."""
        return AcceptanceRule(self.alpha_low, self.alpha_high, self.acceptance)


MATRICES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""The matrices of a decoder layer, as Llama, Qwen and Mistral name them: of the attention, then of the feed-forward."""


class LoraConfig(Section):
    """LoRA: the model is frozen, and a product of two matrices is trained beside each of its `targets`.

    A target W becomes W + alpha / rank * B A, where A has `rank` rows and B has `rank` columns.
    """

    rank: Positive = 16
    alpha: Rate = 32.0
    targets: Annotated[tuple[str, ...], LISTED] = MATRICES

    @model_validator(mode="after")
    def _known(self) -> LoraConfig:
        if not self.targets:
            raise ValueError(f"targets = []: nothing would train; name some of {', '.join(MATRICES)}")
        for name in self.targets:
            if name not in MATRICES:
                raise ValueError(f"targets = {safe(name)}: {unknown(safe(name), MATRICES)}")
            if self.targets.count(name) > 1:
                raise ValueError(f"targets = {name}: it is listed twice")
        return self


Decay = Annotated[float, Field(ge=0, lt=1)]
"""Of a moving average: the weight of its last value."""


class OptimizerConfig(Section):
    """What trains of one model, and its AdamW."""

    lr: Rate = 1e-6
    betas: Annotated[tuple[Decay, Decay], LISTED] = (0.9, 0.999)
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    clip_norm: Rate = 1.0
    lora: LoraConfig | None = None
    """None: all weights train."""
    precision: Precision | None = None
    """None: that of `train.precision`."""


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
    importance_mask: Annotated[tuple[Rate, Rate], LISTED] | None = None
    """Ratios outside of these two take their tokens out of the loss; None: no token is taken out."""
    micro_batch_tokens: Positive = 16384
    gradient_checkpointing: Literal[True, False, "policy", "reward"] = False
    """Layers are computed again in the backward pass: less memory, a third more operations, equal gradients. A name:
    those of this model alone."""

    @model_validator(mode="after")
    def _mask(self) -> LearnConfig:
        if self.importance_mask is None:
            return self
        low, high = self.importance_mask
        if not low < 1.0 < high:
            raise ValueError(
                f"importance_mask = [{low:g}, {high:g}]: a number below 1 and one above 1 are needed, as 1 is "
                "the ratio of a token that sampler and trainer agree on"
            )
        if self.importance != "recomputed":
            raise ValueError(
                f"importance_mask = [{low:g}, {high:g}]: there are ratios only with importance = recomputed, and it is "
                f"{self.importance}"
            )
        return self

    def recomputes(self, name: str) -> bool:
        """Whether the layers of `policy` or `reward` are computed again in the backward pass."""
        return self.gradient_checkpointing in (True, name)

    @property
    def precisions(self) -> dict[str, Precision]:
        """`policy` and `reward`, those that have a precision of their own -> which."""
        found = {"policy": self.policy.precision, "reward": self.reward.precision}
        return {name: precision for name, precision in found.items() if precision is not None}

    @property
    def lora(self) -> dict[str, LoraConfig]:
        """`policy` and `reward`, those that LoRA trains -> how."""
        found = {"policy": self.policy.lora, "reward": self.reward.lora}
        return {name: of for name, of in found.items() if of is not None}


class ArmConfig(Section):
    """One row of the ablation: switches, not forks of the code."""

    outcome: bool = True
    step_votes: bool
    train_reward: bool
    adapt: bool
    reward_from: str | None = None
    """Arm whose trained reward model judges here (for `step_only`); None: the bootstrap's."""
    advantage: Literal["step", "mixed", "trajectory"] = "step"
    """`step`: compared at each step index, among the trajectories still alive. `mixed`: only where their outcomes
    differ. `trajectory`: GRPO, one a trajectory."""
    max_batches: Positive = 1
    """Dynamic sampling (DAPO): tasks whose outcomes are all alike are replaced by further ones until the batch is full,
    or this many batches were rolled out. 1: none is replaced."""
    judge: JudgeSource | None = None
    """Who judges in this arm; None: who the experiment's `judge` says."""
    vote_weight: Annotated[float, Field(ge=0)] | None = None
    """The lambda of Eq. 1 in this arm; None: `signals.lambda`. Eq. 2 keeps the lambda of `signals`."""

    @model_validator(mode="after")
    def _sensible(self) -> ArmConfig:
        if not (self.outcome or self.step_votes):
            raise ValueError("an arm needs outcome or step_votes: without both there is no reward")
        if self.vote_weight is not None and not self.step_votes:
            raise ValueError(
                f"vote_weight = {self.vote_weight}: without step_votes there is nothing to weigh"
            )
        if self.vote_weight == 0 and not self.outcome:
            raise ValueError(
                f"vote_weight = {self.vote_weight}: with outcome = False there is no other reward"
            )
        if self.train_reward and not self.step_votes:
            raise ValueError(
                "train_reward = True: without step_votes the reward model is not asked, and nothing could train it"
            )
        if self.advantage == "mixed" and not self.outcome:
            raise ValueError("advantage = 'mixed': compares where outcomes differ; it needs outcome = True")
        if self.advantage == "trajectory" and (self.step_votes or not self.outcome):
            raise ValueError(
                "advantage = 'trajectory': is that of the outcome alone; it needs outcome = True and step_votes = False"
            )
        if self.max_batches > 1 and not self.outcome:
            raise ValueError(
                f"max_batches = {self.max_batches}: tasks are replaced by their outcomes; with outcome = False it must "
                "be 1"
            )
        return self

    def lambda_of(self, signals: SignalsConfig) -> float:
        """The lambda of Eq. 1 in this arm: its own, or `signals.lambda`; 0 without votes."""
        if not self.step_votes:
            return 0.0
        return signals.lambda_ if self.vote_weight is None else self.vote_weight
