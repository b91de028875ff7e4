"""One LightningModule that owns policy and reward model and updates both from the same iteration.

Optimisation is manual. A batch is one minibatch of each model's experience, already cut into micro-batches. Gradients
accumulate over the micro-batches, then both optimizers step once. Optimizer states are kept across iterations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from lightning.pytorch import LightningModule
from lightning.pytorch.strategies import ParallelStrategy
from torch import Tensor
from transformers import PreTrainedModel

from rlanything.config import LearnConfig, OptimizerConfig
from rlanything.core.errors import ConfigError
from rlanything.core.timing import count, phase
from rlanything.engines.lora.injection import trained
from rlanything.learn.division import Group, computed
from rlanything.learn.fixed_order import fixed_order
from rlanything.learn.losses import Packed, pack, surrogate
from rlanything.learn.mismatch import correction, mismatch
from rlanything.learn.packing import Row, idle_row, micro_batches
from rlanything.learn.pictures import blank_row
from rlanything.learn.recomputing import allow_recomputing, recomputing
from rlanything.learn.sharding import Sharding, logprobs_of, whole

if TYPE_CHECKING:
    from rlanything.engines.sight.eyes import Eyes


@dataclass(frozen=True)
class Minibatch:
    """What one optimizer step of each model learns from: micro-batches of rows. Each model's may be empty."""

    iteration: int
    policy: tuple[tuple[Row, ...], ...]
    reward: tuple[tuple[Row, ...], ...]


class JointModule(LightningModule):
    """Policy and reward model under the clipped surrogate.

    `reference_policy`, `reference_reward`: frozen models that the KL term compares with (kl_reference=base). None: it
    compares with the weights whose log-probs are `Row.old`: those at the start of the iteration. With `train.staleness`
    and `importance: recorded`, the policy's are those that sampled, of the iteration before.
    eyes: `policy` and `reward` -> how the model reads pictures; without one it reads text alone.
    Raises `ConfigError` where `gradient_checkpointing` is set for a model that does not support it.
    """

    def __init__(
        self,
        config: LearnConfig,
        policy: PreTrainedModel,
        reward: PreTrainedModel | None,
        reference_policy: PreTrainedModel | None = None,
        reference_reward: PreTrainedModel | None = None,
        eyes: Mapping[str, Eyes] | None = None,
    ) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.config = config
        self.policy = policy
        self.reward = reward
        for name, model in zip(("policy", "reward"), self._learning(), strict=False):
            if config.recomputes(name):
                allow_recomputing(model)
        # In a dict, so that Lightning does not register them: they are frozen, and no checkpoint needs them.
        self._eyes = eyes or {}
        self._references = {"policy": reference_policy, "reward": reference_reward}
        self.totals: dict[str, list[float]] = defaultdict(list)
        """Statistics of the iteration so far: name -> one value per optimizer step."""

    def configure_model(self) -> None:
        """Divide the models over the processes, where the strategy of the trainer shards (`learn.sharding`)."""
        strategy = self.trainer.strategy
        if isinstance(strategy, Sharding):
            for model in self._learning():
                strategy.divide(model)

    def configure_optimizers(self) -> list[torch.optim.Optimizer]:
        """AdamW for the policy and, where it trains, for the reward model."""
        settings = (self.config.policy, self.config.reward)
        return [_adamw(model, of) for model, of in zip(self._learning(), settings, strict=False)]

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Leave out the weights that no optimizer changes: with LoRA, those that the run began with."""
        frozen, state = self._frozen(), checkpoint["state_dict"]
        checkpoint["state_dict"] = {name: value for name, value in state.items() if name not in frozen}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Put in the weights that were left out: the module has them already."""
        own = self.state_dict()
        checkpoint["state_dict"] |= {name: own[name] for name in self._frozen()}

    def _frozen(self) -> set[str]:
        """The names of the weights that no optimizer changes. A tied weight has all of its names here."""
        every = self.named_parameters(remove_duplicate=False)
        return {name for name, value in every if not value.requires_grad}

    def _learning(self) -> list[PreTrainedModel]:
        return [self.policy] if self.reward is None else [self.policy, self.reward]

    def transfer_batch_to_device(
        self, batch: Minibatch, device: torch.device, dataloader_idx: int
    ) -> Minibatch:
        """The batch as it is: rows stay lists until a forward pass packs them onto the device."""
        return batch

    def on_train_epoch_start(self) -> None:
        """Drop the statistics of the previous iteration."""
        self.totals.clear()

    @phase("learn")
    def training_step(self, batch: Minibatch, _index: int) -> None:
        """One optimizer step of each model that has something to learn."""
        count("tokens", sum(len(row.ids) for rows in (*batch.policy, *batch.reward) for row in rows))
        optimizers = self.optimizers(use_pl_optimizer=True)
        optimizers = optimizers if isinstance(optimizers, list) else [optimizers]
        parts = [("policy", self.policy, batch.policy, self.config.policy)]
        if self.reward is not None:
            parts.append(("reward", self.reward, batch.reward, self.config.reward))
        for optimizer, (name, model, micro, settings) in zip(optimizers, parts, strict=True):
            if micro:
                with recomputing(model, self.config.recomputes(name)), fixed_order(self._place):
                    self._update(name, model, micro, optimizer, settings)

    @phase("learn")
    def prepare(self, name: str, rows: Sequence[Row]) -> dict[str, float]:
        """Fill in the log-probs that were not recorded: those of the reference, and recomputed ones.

        The processes divide the passes, and each one fills in all rows: every process must call it with the same ones.
        The rows change in place. With importance=recomputed, returns the metrics of `mismatch`, with the name of the
        model before them. Otherwise returns no metric.
        """
        model = self.policy if name == "policy" else self.reward
        reference = self._references[name]
        recompute = self.config.importance == "recomputed"
        if model is None or (reference is None and not recompute):
            return {}
        groups = micro_batches(rows, self.config.micro_batch_tokens)
        drift: list[float] = []
        if recompute:
            for group, fresh in zip(groups, self._logprobs(name, model, groups), strict=True):
                drift += self._recompute(model, group, fresh, anchored=reference is not None)
        if reference is not None:
            for group, fresh in zip(groups, self._logprobs(name, reference, groups), strict=True):
                _spread([r.reference for r in group], fresh)
        found = mismatch(drift, self.config.importance_cap, self.config.importance_mask)
        return {f"{name}/{metric}": value for metric, value in found.items()}

    def _recompute(
        self, model: PreTrainedModel, rows: Sequence[Row], logprobs: Sequence[float], *, anchored: bool
    ) -> list[float]:
        """Truncated and masked importance sampling. Returns, for each target, trainer's minus recorded log-prob.

        Weights are multiplied by `correction` of the ratios. The trainer's log-probs become `old`, and without a
        reference model (`anchored` false) also `reference`.
        """
        fresh = torch.tensor(logprobs, device=self._place)
        recorded = torch.tensor([x for r in rows for x in r.old], device=fresh.device)
        ratios = (fresh - recorded).exp()
        factors = correction(ratios, self.config.importance_cap, self.config.importance_mask)
        weights = torch.tensor([x for r in rows for x in r.weight], device=fresh.device)
        _spread([r.old for r in rows], logprobs)
        _spread([r.weight for r in rows], (weights * factors).tolist())
        if not anchored:
            _spread([r.reference for r in rows], logprobs)
        return [float(x) for x in fresh - recorded]

    @torch.no_grad()
    def _logprobs(
        self, name: str, model: PreTrainedModel, groups: Sequence[Sequence[Row]]
    ) -> list[list[float]]:
        """Log-probs of the targets of each micro-batch."""

        def one(rows: Group) -> list[float]:
            with fixed_order(self._place):
                found: list[float] = self._passed(name, model, self._packed(name, rows)).tolist()
            return found

        return computed(groups, self.trainer, one, self.blank(name))

    def blank(self, name: str) -> Row | None:
        """A row that shows the model `name` a blank picture; None where it reads text alone."""
        eyes = self._eyes.get(name)
        return None if eyes is None else blank_row(eyes)

    @property
    def _place(self) -> torch.device:
        """The device that computes. The weights themselves may lie in the host's memory (`train.offload`)."""
        found: torch.device = self.trainer.strategy.root_device
        return found

    def _packed(self, name: str, rows: Group) -> Packed:
        """A micro-batch as tensors. One without targets gets a row that teaches nothing.

        Another process has one more micro-batch, and needs this one for the same passes through the model.
        """
        taught = any(row.target for row in rows)
        return pack(rows if taught else [*rows, idle_row()], self._place, self._eyes.get(name))

    def _update(
        self,
        name: str,
        model: PreTrainedModel,
        micro: Sequence[Sequence[Row]],
        optimizer: Any,
        settings: OptimizerConfig,
    ) -> None:
        optimizer.zero_grad()
        world = self.trainer.world_size
        sums: dict[str, Tensor] = {}
        for number, rows in enumerate(micro, start=1):
            loss, stats = self._loss(name, model, rows)
            # DDP averages gradients over processes; the weights are already normalised over all of them.
            with self._exchanging(name, last=number == len(micro)):
                self.manual_backward(loss * world)
            sums = {
                key: sums.get(key, torch.zeros((), device=self._place)) + value
                for key, value in stats.items()
            }
        norm = whole(torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm))
        _check_finite(name, norm)
        optimizer.step()
        for key, value in sums.items():
            self.totals[f"{name}/{key}"].append(float(self.trainer.strategy.reduce(value, reduce_op="sum")))
        self.totals[f"{name}/grad_norm"].append(float(norm))

    def _exchanging(self, name: str, *, last: bool) -> AbstractContextManager[None]:
        """Within it a backward pass leaves its gradients in this process, if further passes of the step follow.

        With DDP, and with `train.exchange: last`, the last one exchanges their sum. It exchanges the gradients of the
        weights that it passes through alone. The last micro-batch of a model that reads pictures may show none, so
        there every pass exchanges.
        """
        strategy = self.trainer.strategy
        if last or name in self._eyes or not isinstance(strategy, ParallelStrategy):
            return nullcontext()
        return strategy.block_backward_sync()

    def _loss(
        self, name: str, model: PreTrainedModel, rows: Sequence[Row]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        batch = self._packed(name, rows)
        return surrogate(self._passed(name, model, batch), batch, self.config.epsilon, self.config.beta)

    def _passed(self, name: str, model: PreTrainedModel, batch: Packed) -> Tensor:
        """Log-probs [N] of the targets, in the number formats of the model `name`.

        With `bf16-mixed` it is PyTorch's autocast. That caches no copy of a weight, because an update may come between
        two passes. Backward passes stay outside of it: they compute in the formats of the forward ones.
        """
        precision = self.config.precisions.get(name, self.trainer.precision_plugin.precision)
        if precision != "bf16-mixed":
            return logprobs_of(model)(batch)
        with torch.autocast(self._place.type, torch.bfloat16, cache_enabled=False):
            return logprobs_of(model)(batch)


def _check_finite(name: str, norm: Tensor) -> None:
    """Refuse a step that would leave no usable weights. What was published before stays the point to resume from.

    Raises `ConfigError`.
    """
    if not bool(torch.isfinite(norm)):
        raise ConfigError(
            f"learn.{name}: the norm of the gradient is {float(norm)}, so that the next weights would not be numbers. "
            f"Lower learn.{name}.lr: training then starts from the beginning. `rlanything watch` shows the iterations "
            "before, which are kept"
        )


def _adamw(model: PreTrainedModel, config: OptimizerConfig) -> torch.optim.Optimizer:
    return torch.optim.AdamW(
        trained(model).values(),
        lr=config.lr,
        betas=config.betas,
        weight_decay=config.weight_decay,
        foreach=True,
    )


def _spread(lists: Sequence[list[float]], values: Sequence[float]) -> None:
    """Write the values [N] of all targets back into the rows' lists."""
    flat = iter(values)
    for target in lists:
        target[:] = [next(flat) for _ in target]
