"""The gradient of a batch: whole, or in two halves that two processes compute at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor
from transformers import PreTrainedModel

from rlanything.learn.losses import pack, target_logprobs
from rlanything.learn.packing import Row, micro_batches

if TYPE_CHECKING:
    from rlanything.engines.sight.eyes import Eyes

MICRO_BATCH_TOKENS = 4096
"""The most tokens of a forward pass, with padding."""


class Gradient(Protocol):
    """How the gradient of a batch is computed."""

    def __call__(self, model: PreTrainedModel, batch: Sequence[Row]) -> float:
        """Set the gradients of the batch's weighted mean loss. Returns this loss."""
        ...


def whole(model: PreTrainedModel, batch: Sequence[Row], eyes: Eyes | None = None) -> float:
    """`Gradient`, computed here. eyes: read the pictures of rows that show some."""
    model.zero_grad()
    return accumulate(model, batch, weight(batch), eyes)


Half = Callable[[], tuple[float, list[Tensor]]]
"""Waits for a loss and its gradient, a tensor for each parameter in the order of `model.parameters()`."""
Begin = Callable[[PreTrainedModel, Sequence[Row], float], Half]
"""Begins to compute what `gradient` returns."""


def here(model: PreTrainedModel, rows: Sequence[Row], total: float) -> Half:
    """`Begin` that computes in this process, when it is waited for."""
    return lambda: gradient(model, rows, total)


def in_halves(model: PreTrainedModel, batch: Sequence[Row], begin: Begin = here) -> float:
    """`Gradient` as the sum of two halves, which are computed apart also in one process. So two give the same bytes."""
    total, (mine, others) = weight(batch), halves(batch)
    other = begin(model, others, total)
    own, summed = gradient(model, mine, total)
    loss, summands = other()
    for parameter, first, second in zip(model.parameters(), summed, summands, strict=True):
        parameter.grad = first + second
    return own + loss


def halves(batch: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The rows in two parts with about as many tokens. The second is empty where there is one row."""
    ordered = sorted(batch, key=lambda row: len(row.ids), reverse=True)
    return ordered[::2], ordered[1::2]


def weight(rows: Sequence[Row]) -> float:
    """What the losses of the targets are divided by."""
    return sum(sum(row.weight) for row in rows)


def gradient(model: PreTrainedModel, rows: Sequence[Row], total: float) -> tuple[float, list[Tensor]]:
    """The loss of rows, and its gradient in tensors of their own."""
    model.zero_grad()
    loss = accumulate(model, rows, total)
    return loss, [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]


def accumulate(model: PreTrainedModel, rows: Sequence[Row], total: float, eyes: Eyes | None = None) -> float:
    """Add the gradient of the rows' loss to that of the model. Returns the loss."""
    loss = 0.0
    for micro in micro_batches(rows, MICRO_BATCH_TOKENS):
        packed = pack(micro, model.device, eyes)
        part = -(packed.weight_n * target_logprobs(model, packed)).sum() / total
        part.backward()
        loss += float(part.detach())
    return loss
