"""Small trainings of both models under a real trainer, over rows that need no environment."""

from __future__ import annotations

import copy
import json
import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from learn_cases import FAST, SLOW, dialogue, judged, lesson, qwen2, recorded, verdicts
from lightning.pytorch import Callback, LightningModule, Trainer
from torch.distributed import GradBucket
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.distributed.fsdp import FSDPModule
from torch.distributed.fsdp._fully_shard._fsdp_collectives import DefaultReduceScatter
from torch.distributed.fsdp._fully_shard._fsdp_param import FSDPParam
from torch.nn.parallel import DistributedDataParallel
from torch.utils._pytree import tree_leaves
from transformers import PreTrainedModel

from rlanything.config import LearnConfig, LoraConfig, Precision
from rlanything.engines.lora.injection import inject
from rlanything.learn.batches import own_part
from rlanything.learn.callbacks import PublishIteration
from rlanything.learn.datamodule import ExperienceDataModule
from rlanything.learn.module import JointModule, Minibatch
from rlanything.learn.packing import Row, minibatches, policy_rows, reward_rows
from rlanything.learn.sharding import gather, whole
from rlanything.learn.trainer import LoadedPrecision, StateFile, make_strategy

UNITS = 5
MODELS = {"policy": 1, "reward": 2}
"""The seed of each one's first weights."""
OFFLOAD, LATE = "fsdp, offload", "fsdp, exchange last"
LORA, ANCHORED = "lora", "anchored"
TWICE = SLOW.model_copy(update={"kl_reference": "base", "importance": "recomputed"})
"""Log-probs are computed again before an update: by the model that trains and by its reference."""
OWN = TWICE.model_copy(update={"policy": TWICE.policy.model_copy(update={"precision": "bf16-mixed"})})
"""The policy computes in bfloat16, the reward model does not."""


def low_rank(config: LearnConfig, *names: str) -> LearnConfig:
    """The configuration with LoRA for these models; for both where none is named."""
    settings = LoraConfig(rank=4, alpha=8.0)
    parts = {
        name: getattr(config, name).model_copy(update={"lora": settings})
        for name in names or ("policy", "reward")
    }
    return config.model_copy(update=parts)


@dataclass
class Stage:
    """A module, what it learns from, and what was seen while it did.

    Every process collects the same rows and takes its share of the micro-batches, as a run's processes do.
    """

    config: LearnConfig = FAST
    micro_tokens: int = 200
    with_reward: bool = True
    anchored: bool = False
    skew: float = 0.0
    """How far the recorded log-probs are from the trainer's own."""
    half: bool = False
    """Whether weights that LoRA freezes are bfloat16."""
    silent: bool = False
    """Whether the reward model has nothing to learn in the first iteration."""
    iteration: int = 0
    totals: list[dict[str, list[float]]] = field(default_factory=list)
    prepared: list[dict[str, float]] = field(default_factory=list)
    passes: int = 0
    """How many passes the reference policy made."""
    backward: int = 0
    """How many backward passes this process made."""
    exchanged: int = 0
    """How often its gradients were exchanged, all of a model at a time."""
    held: list[int] = field(default_factory=list)
    """How many numbers this process held in tensors for each checkpoint."""

    def __post_init__(self) -> None:
        self.config = self.config.model_copy(update={"micro_batch_tokens": self.micro_tokens})
        self.policy, self.reward = self.made("policy"), self.made("reward")
        self.module = JointModule(
            self.config,
            self.policy,
            self.reward if self.with_reward else None,
            copy.deepcopy(self.policy) if self.anchored else None,
            copy.deepcopy(self.reward) if self.anchored and self.with_reward else None,
        )
        if reference := self.module._references["policy"]:
            reference.model.layers[0].register_forward_pre_hook(self.passed)

    def made(self, name: str) -> PreTrainedModel:
        """A model as it is before training."""
        model, settings = qwen2(MODELS[name]), self.config.lora.get(name)
        if settings:
            inject(model, settings, len(name), f"learn.{name}.lora")
            frozen = [value for value in model.parameters() if not value.requires_grad]
            for value in frozen if self.half else ():
                value.data = value.data.to(torch.bfloat16)
        return model

    def sampler(self, name: str) -> PreTrainedModel:
        """What samples: the model itself, or a whole copy of a sharded one."""
        model: PreTrainedModel = getattr(self, name)
        if all(value is whole(value) for value in model.parameters()):
            return model
        copy = self.made(name)
        gather(model, copy)
        return copy

    def collect(self) -> list[Minibatch]:
        seeds = range(UNITS * self.iteration, UNITS * (self.iteration + 1))
        units = {
            "policy": [policy_rows(lesson(dialogue(s)), "trajectory") for s in seeds],
            "reward": [reward_rows(verdicts(judged(s)), "step") for s in seeds],
        }
        parts: dict[str, list[list[Row]]] = {}
        for name in MODELS:
            rows = recorded([row for unit in units[name] for row in unit], self.sampler(name))
            for row in rows:
                row.old = [x + self.skew for x in row.old]
            parts[name] = minibatches(units[name], self.config.updates, 0, self.iteration, name)
            if name == "reward" and self.silent and self.iteration == 0:
                parts[name] = [[] for _ in parts[name]]
            self.prepared.append(self.module.prepare(name, [r for b in parts[name] for r in b]))
        found = [
            Minibatch(self.iteration, *(own_part(self.module, name, parts[name], u) for name in MODELS))
            for u in range(self.config.updates)
        ]
        self.backward += sum(len(batch.policy) + len(batch.reward) for batch in found)
        return found

    def passed(self, *_: Any) -> None:
        self.passes += 1

    def fit(
        self,
        iterations: int,
        publish: Path | None = None,
        resume: Path | None = None,
        precision: Precision = "32-true",
        **more: Any,
    ) -> Stage:
        """Train up to `iterations`; `publish`: folder of one checkpoint per iteration."""

        def write(save: Callable[[Path], None]) -> dict[str, float]:
            self.iteration += 1
            if publish is not None:
                save(publish / f"{self.iteration}.ckpt")
            return {"iteration": self.iteration - 1.0}

        data = ExperienceDataModule(
            self.collect, self.config.updates, lambda: {"iteration": self.iteration}, self.restore
        )
        watched = [PublishIteration(write), Watch(self)]
        plugins = [StateFile(), LoadedPrecision(precision)]
        trainer = quiet(max_epochs=iterations, callbacks=watched, plugins=plugins, **more)
        trainer.fit(self.module, data, ckpt_path=str(resume) if resume else None)
        return self

    def restore(self, state: dict[str, Any]) -> None:
        self.iteration = state["iteration"]

    def weights(self) -> dict[str, torch.Tensor]:
        return {name: whole(value).clone() for name, value in self.module.state_dict().items()}


class Reducing(DefaultReduceScatter):
    """How FSDP exchanges the gradients of a model that are not in its layers. Counts how often it does."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        self.stage.exchanged += 1
        return super().__call__(*arguments, **more)


class Watch(Callback):
    """Keeps every iteration's statistics, and counts how often gradients are exchanged, and what checkpoints hold."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if isinstance(trainer.strategy.model, DistributedDataParallel):
            trainer.strategy.model.register_comm_hook(None, lambda _, bucket: self.exchange(bucket))
        for model in (self.stage.policy, self.stage.reward):
            if isinstance(model, FSDPModule):
                model.set_custom_reduce_scatter(Reducing(self.stage))

    def exchange(self, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        self.stage.exchanged += bucket.is_last()
        return allreduce_hook(None, bucket)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.stage.totals.append({k: list(v) for k, v in self.stage.module.totals.items()})

    def on_save_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        self.stage.held.append(numbers(checkpoint))


def quiet(**settings: Any) -> Trainer:
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
    return Trainer(
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **{"accelerator": "cpu", "devices": 1, **settings},
    )


def furthest(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    """The largest difference between two sets of weights."""
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).abs().max()) for name in one)


def numbers(state: Any) -> int:
    """How many numbers a checkpoint holds in tensors."""
    return sum(value.numel() for value in tree_leaves(state) if isinstance(value, torch.Tensor))


def divided(stage: Stage) -> list[FSDPParam]:
    """The weights of both models that are divided over the processes, as FSDP keeps them."""
    modules = [m for m in stage.module.modules() if isinstance(m, FSDPModule)]
    return [
        part
        for m in modules
        for group in m._get_fsdp_state()._fsdp_param_groups
        for part in group.fsdp_params
    ]


def main(folder: Path, strategy: str, resume: str = "") -> None:
    """One of several processes: train, then leave statistics and weights of the first and the last process.

    strategy: that of a configuration, `OFFLOAD`, or `LATE`.
    resume: a checkpoint of a stage whose reward model had nothing to learn so far; none: `lora`, and LoRA trains
    beside bfloat16; `anchored`, with `OWN`."""
    torch.set_num_threads(1)
    mode, resume = (resume, "") if resume in (LORA, ANCHORED) else ("", resume)
    config = {LORA: low_rank(SLOW), ANCHORED: OWN}.get(mode, SLOW)
    skewed = {"anchored": True, "skew": 0.3} if mode == ANCHORED else {}
    stage = Stage(config, micro_tokens=60, silent=bool(resume), half=mode == LORA, **skewed)
    offload = strategy == OFFLOAD
    made = make_strategy(strategy.partition(",")[0], 2, offload=offload, late=strategy == LATE)
    placed = {"strategy": made, "devices": 2}
    stage.fit(2, folder, Path(resume) if resume else None, **placed)
    assert {part.offload_to_cpu for part in divided(stage)} <= {offload}
    rank = stage.module.trainer.global_rank
    (folder / f"divided-{rank}.json").write_text(json.dumps(len(divided(stage))))
    for name in ("totals", "passes", "prepared", "backward", "exchanged", "held"):
        (folder / f"{name}-{rank}.json").write_text(json.dumps(getattr(stage, name)))
    torch.save(stage.weights(), folder / f"weights-{rank}.pt")
