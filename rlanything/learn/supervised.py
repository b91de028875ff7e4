"""Supervised warm starts of the embedded models: maximum likelihood of given responses, in one plain loop.

The models must be ready within minutes, so the loop is tuned for the success rate per CPU-second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import torch
from transformers import PreTrainedModel, Qwen2Config, Qwen2ForCausalLM

from rlanything.config import Architecture, SupervisedConfig
from rlanything.core.seeds import derive_seed
from rlanything.engines.prompt_trunks import common_prefix
from rlanything.learn.losses import pack, target_logprobs
from rlanything.learn.packing import NO_BRANCH, Row, micro_batches
from rlanything.learn.wide_products import wide_products

if TYPE_CHECKING:
    from rlanything.engines.sight.eyes import Eyes

WARMUP = 0.05
"""Share of the steps over which the learning rate rises linearly; it then falls along a cosine to zero."""


def fresh_model(architecture: Architecture, vocab: int, end: int, pad: int, seed: int) -> Qwen2ForCausalLM:
    """A randomly initialised Qwen2 of the declared size, whose layers add nothing yet.

    The matrices that write to the residual stream begin at zero (Zhang et al. 2019, Fixup, arXiv 1901.09321). With
    random ones the layers drown the embedding: its norm is 0.7, and theirs is ten times as large. Such a model learns
    late to look up what it has read.
    """
    config = Qwen2Config(
        vocab_size=vocab,
        hidden_size=architecture.hidden,
        intermediate_size=architecture.intermediate,
        num_hidden_layers=architecture.layers,
        num_attention_heads=architecture.heads,
        num_key_value_heads=architecture.kv_heads,
        max_position_embeddings=architecture.positions,
        initializer_range=0.7 / math.sqrt(architecture.hidden),
        tie_word_embeddings=True,
        eos_token_id=end,
        pad_token_id=pad,
        bos_token_id=None,
    )
    torch.manual_seed(seed)
    model = Qwen2ForCausalLM(config)
    for layer in model.model.layers:
        torch.nn.init.zeros_(layer.self_attn.o_proj.weight)
        torch.nn.init.zeros_(layer.mlp.down_proj.weight)
    return model


@dataclass(frozen=True, slots=True)
class Turn:
    """A prompt, and the response to learn (token ids)."""

    prompt: tuple[int, ...]
    response: tuple[int, ...]


def conversation_rows(turns: Sequence[Turn], context_weight: float = 0.0) -> list[Row]:
    """Rows of an episode's turns. Every response token is a target of weight 1.

    Turns that extend each other share a row. Where that breaks, a new row starts, as in `packing.policy_rows`.
    `context_weight`: weight of the prompt tokens as targets. A prefix that the previous row already holds is left out.
    Predicting observations teaches a small model to look up and copy names, which it needs in order to act.
    """
    rows = [Row()]
    for turn in turns:
        row, known = rows[-1], common_prefix(tuple(rows[-1].ids), turn.prompt)
        if known < len(row.ids):
            row = Row()
            rows.append(row)
        row.read(turn.prompt[len(row.ids) :], len(row.ids), None, NO_BRANCH, NO_BRANCH)
        base = len(row.ids) - 1
        if context_weight:
            for t in range(max(known, 1), base + 1):
                row.learn(t - 1, row.ids[t], (), 0.0, 0.0, context_weight)
        row.read(turn.response, len(row.ids), None, NO_BRANCH, NO_BRANCH)
        for t, token in enumerate(turn.response):
            row.learn(base + t, token, (), 0.0, 0.0, 1.0)
    return rows


def fit(
    model: PreTrainedModel,
    examples: Sequence[Sequence[Row]],
    config: SupervisedConfig,
    seed: int,
    report: Callable[[int, int, float], None],
    micro_batch_tokens: int = 4096,
    eyes: Eyes | None = None,
) -> float:
    """Maximise the weighted log-likelihood of the targets. Returns the mean loss of the last tenth of the steps.

    examples: the rows of each example. Each epoch goes through them in a new shuffled order.
    `report(step, steps, loss)` is called after each step. The model is left in training mode. eyes: read the pictures
    of rows that show some.
    """
    optimizers = _optimizers(model, config)
    model.train()
    losses: list[float] = []
    for step in range(config.steps):
        for optimizer, lr in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = lr * schedule(step, config.steps)
            optimizer.zero_grad()
        batch = [row for k in _batch(len(examples), step, config.batch, seed) for row in examples[k]]
        losses.append(_backward(model, batch, micro_batch_tokens, eyes))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        with wide_products():
            for optimizer, _ in optimizers:
                optimizer.step()
        report(step + 1, config.steps, losses[-1])
    tail = losses[-max(1, len(losses) // 10) :]
    return sum(tail) / len(tail)


def _backward(
    model: PreTrainedModel, batch: Sequence[Row], micro_batch_tokens: int, eyes: Eyes | None
) -> float:
    """Compute the gradients of the batch's weighted mean loss. Returns this loss."""
    total = sum(sum(row.weight) for row in batch)
    loss = 0.0
    for micro in micro_batches(batch, micro_batch_tokens):
        packed = pack(micro, model.device, eyes)
        part = -(packed.weight_n * target_logprobs(model, packed)).sum() / total
        part.backward()
        loss += float(part.detach())
    return loss


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
