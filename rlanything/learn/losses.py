"""The clipped surrogate loss with its KL term, and the log-probs that it compares.

Shape letters: B rows, T tokens, N targets of all rows, K allowed ids, V vocabulary, D hidden size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from transformers import PreTrainedModel

from rlanything.learn.packing import NO_BRANCH, Row
from rlanything.learn.pictures import Seen, seen

if TYPE_CHECKING:
    from rlanything.engines.sight.eyes import Eyes


@dataclass(frozen=True)
class Packed:
    """A micro-batch as tensors."""

    ids_bt: Tensor
    positions_bt: Tensor
    mask_b1tt: Tensor | None
    """True where attention is allowed. None: plain causal attention, which never sees the padding on the right."""
    row_n: Tensor
    source_n: Tensor
    target_n: Tensor
    allowed_nk: Tensor | None
    """Allowed ids, padded with -1; all -1 where decoding was free. None: decoding was free everywhere."""
    old_n: Tensor
    reference_n: Tensor
    advantage_n: Tensor
    weight_n: Tensor
    seen: Seen | None
    """The pictures that the rows show. None: the model reads text alone."""


def pack(rows: Sequence[Row], device: torch.device | str = "cpu", eyes: Eyes | None = None) -> Packed:
    """Pad rows on the right and collect their targets. There must be at least one row with a target.

    eyes: of a model that reads pictures. Raises `ValueError` for pictures without.
    """
    width = max(len(r.ids) for r in rows)
    flat = [
        x
        for r in rows
        for x in zip(r.source, r.target, r.old, r.reference, r.advantage, r.weight, strict=True)
    ]
    source, target, old, reference, advantage, weight = zip(*flat, strict=True)
    owners = [b for b, r in enumerate(rows) for _ in r.target]
    floats = torch.tensor([old, reference, advantage, weight], dtype=torch.float32, device=device)
    old_n, reference_n, advantage_n, weight_n = floats
    return Packed(
        _padded([r.ids for r in rows], width, 0, device),
        _padded([r.positions for r in rows], width, 0, device),
        _tree_mask(rows, width, device) if rows[0].branched else None,
        torch.tensor(owners, device=device),
        torch.tensor(source, device=device),
        torch.tensor(target, device=device),
        _allowed([a for r in rows for a in r.allowed], device),
        old_n,
        reference_n,
        advantage_n,
        weight_n,
        seen([r.images for r in rows], eyes, device),
    )


def target_logprobs(model: PreTrainedModel, batch: Packed) -> Tensor:
    """Log-probs [N] of the targets at temperature 1. Under constrained decoding, renormalised over the allowed ids."""
    mask = batch.mask_b1tt
    if mask is not None:
        mask = torch.zeros_like(mask, dtype=model.dtype).masked_fill_(~mask, torch.finfo(model.dtype).min)
    shown = (
        {"position_ids": batch.positions_bt}
        if batch.seen is None
        else batch.seen.inputs(model, batch.ids_bt, batch.positions_bt)
    )
    hidden_btd = model.base_model(
        input_ids=batch.ids_bt, attention_mask=mask, use_cache=False, **shown
    ).last_hidden_state
    logits_nv = model.get_output_embeddings()(hidden_btd[batch.row_n, batch.source_n]).float()
    if batch.seen is not None:
        logits_nv = batch.seen.without_pictures(logits_nv)
    chosen_n = logits_nv.gather(1, batch.target_n[:, None])[:, 0]
    if batch.allowed_nk is None:
        return chosen_n - logits_nv.logsumexp(1)
    absent_nk = batch.allowed_nk < 0
    free_n = absent_nk.all(1)
    kept_nk = logits_nv.gather(1, batch.allowed_nk.clamp(min=0))
    kept_nk = kept_nk.masked_fill(absent_nk & ~free_n[:, None], float("-inf"))
    norm_n = kept_nk.logsumexp(1)
    if bool(free_n.any()):  # an environment may list actions in some turns only
        norm_n = torch.where(free_n, logits_nv.logsumexp(1), norm_n)
    return chosen_n - norm_n


def surrogate(
    logprob_n: Tensor, batch: Packed, epsilon: float, beta: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """PPO's clipped surrogate loss plus beta times the k3 estimate of KL(current || reference), weighted per token.

    loss = sum_n w_n * (-min(r A, clip(r, 1-eps, 1+eps) A) + beta * (exp(d) - d - 1)), with the ratio
    r = exp(current - old) and d = reference - current. Also returns statistics, weighted alike and detached.
    """
    ratio_n = (logprob_n - batch.old_n).exp()
    clipped_n = ratio_n.clamp(1.0 - epsilon, 1.0 + epsilon)
    gain_n = torch.minimum(ratio_n * batch.advantage_n, clipped_n * batch.advantage_n)
    difference_n = batch.reference_n - logprob_n
    kl_n = k3(torch.where(batch.weight_n > 0, difference_n, 0.0))  # 0 times an overflow is no number
    loss = (batch.weight_n * (beta * kl_n - gain_n)).sum()
    with torch.no_grad():
        stats = {
            "loss": loss.detach(),
            "kl": (batch.weight_n * k3(logprob_n - batch.old_n)).sum(),  # KL(old || current)
            "clipped": (batch.weight_n * (ratio_n != clipped_n)).sum(),
            "entropy": -(batch.weight_n * logprob_n).sum(),
        }
    return loss, stats


def k3(difference: Tensor) -> Tensor:
    """The k3 estimate exp(d) - d - 1 for d = log q - log p of tokens sampled from p: unbiased for KL(p || q), >= 0.

    Tokens that were sampled at a temperature other than 1 are not sampled from p. The estimate is then biased.
    """
    return torch.expm1(difference) - difference


def _padded(lists: Sequence[Sequence[int]], width: int, value: int, device: torch.device | str) -> Tensor:
    return torch.tensor([[*x, *[value] * (width - len(x))] for x in lists], device=device)


def _allowed(allowed: Sequence[tuple[int, ...]], device: torch.device | str) -> Tensor | None:
    most = max(len(a) for a in allowed)
    return _padded(allowed, most, -1, device) if most else None


def _tree_mask(rows: Sequence[Row], width: int, device: torch.device | str) -> Tensor:
    """Boolean mask [B, 1, T, T]. Every token attends to itself, so that no row of a softmax is empty."""
    limit = _padded([r.limit for r in rows], width, 0, device)
    question = _padded([r.question for r in rows], width, -2, device)
    vote = _padded([r.vote for r in rows], width, -2, device)
    index = torch.arange(width, device=device)
    trunk = (question == NO_BRANCH)[:, None, :] & (index[None, None, :] < limit[:, :, None])
    same = question[:, None, :] == question[:, :, None]
    mine = (vote == NO_BRANCH)[:, None, :] | (vote[:, None, :] == vote[:, :, None])
    causal = index[None, :] <= index[:, None]
    branch = same & mine & (question != NO_BRANCH)[:, None, :] & causal[None]
    return (trunk | branch | torch.eye(width, dtype=torch.bool, device=device)[None])[:, None]
