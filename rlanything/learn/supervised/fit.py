"""The loop that teaches: one step of two optimizers for each batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import torch
from transformers import PreTrainedModel

from rlanything.config import SupervisedConfig
from rlanything.core.seeds import derive_seed
from rlanything.learn.packing import Row
from rlanything.learn.supervised.gradient import Gradient, whole
from rlanything.learn.supervised.wide_products import wide_products

WARMUP = 0.05
"""Share of the steps over which the learning rate rises linearly; it then falls along a cosine to zero."""


def fit(
    model: PreTrainedModel,
    examples: Sequence[Sequence[Row]],
    config: SupervisedConfig,
    seed: int,
    report: Callable[[int, int, float], None],
    gradient: Gradient = whole,
) -> float:
    """Maximise the weighted log-likelihood of the targets. Returns the mean loss of the last tenth of the steps.

    examples: the rows of each example. Each epoch goes through them in a new shuffled order.
    `report(step, steps, loss)` is called after each step. The model is left in training mode.
    """
    optimizers = _optimizers(model, config)
    model.train()
    losses: list[float] = []
    for step in range(config.steps):
        for optimizer, lr in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = lr * schedule(step, config.steps)
        batch = [row for k in _batch(len(examples), step, config.batch, seed) for row in examples[k]]
        losses.append(gradient(model, batch))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        with wide_products():
            for optimizer, _ in optimizers:
                optimizer.step()
        report(step + 1, config.steps, losses[-1])
    tail = losses[-max(1, len(losses) // 10) :]
    return sum(tail) / len(tail)


def _optimizers(
    model: PreTrainedModel, config: SupervisedConfig
) -> list[tuple[torch.optim.Optimizer, float]]:
    """(optimizer, its highest learning rate): Muon for the hidden matrices, AdamW for everything else.

    AdamW alone needs several times as many steps for the same success rate.
    """
    embedding = model.get_input_embeddings().weight
    matrices = [p for p in model.parameters() if p.ndim == 2 and p is not embedding]
    others = [p for p in model.parameters() if p.ndim != 2 or p is embedding]
    muon = torch.optim.Muon(matrices, lr=config.matrix_lr, weight_decay=0.01, momentum=0.95)
    adamw = torch.optim.AdamW(others, lr=config.lr, betas=(0.9, 0.98), weight_decay=0.01, foreach=True)
    return [(muon, config.matrix_lr), (adamw, config.lr)]


def schedule(step: int, steps: int) -> float:
    """Factor of the learning rate at `step`: linear warm-up, then a cosine to zero."""
    warm = max(1, round(WARMUP * steps))
    if step < warm:
        return (step + 1) / warm
    return 0.5 + 0.5 * math.cos(math.pi * (step - warm) / max(1, steps - warm))


def _batch(count: int, step: int, size: int, seed: int) -> list[int]:
    """Indexes of batch `step`, drawn epoch by epoch without replacement."""
    result = []
    for k in range(step * size, (step + 1) * size):
        epoch, place = divmod(k, count)
        result.append(_order(count, epoch, seed)[place])
    return result


@lru_cache(maxsize=4)
def _order(count: int, epoch: int, seed: int) -> list[int]:
    return sorted(range(count), key=lambda k: derive_seed(seed, "epoch", epoch, k))
