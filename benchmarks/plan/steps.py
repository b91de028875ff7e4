"""Bytes of an update: measured, and as the plan says it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch._C._profiler import _EventType
from torch.profiler import ProfilerActivity, profile
from transformers import PreTrainedModel

from benchmarks.plan.models import MARKS
from rlanything.config import LoraConfig, Precision
from rlanything.engines.lora.injection import inject, trained
from rlanything.engines.placement import Role, dtype
from rlanything.engines.sight.eyes import Eyes
from rlanything.learn.losses import pack, target_logprobs
from rlanything.learn.packing import Row
from rlanything.learn.recomputing import allow_recomputing, recomputing
from rlanything.planning.costs.activations import activations
from rlanything.planning.costs.low_rank import lora_weights
from rlanything.planning.costs.sizes import Size

PRECISIONS: tuple[Precision, ...] = ("32-true", "bf16-mixed", "bf16-true")


def measure_step(
    model: PreTrainedModel,
    rows: Sequence[Sequence[Row]],
    precision: Precision,
    *,
    recomputed: bool = False,
    lora: LoraConfig | None = None,
    eyes: Eyes | None = None,
) -> int:
    """Most bytes at once in an update of `rows` (two micro-batches), with weights, gradients and moments.

    recomputed: with gradient checkpointing. lora: what trains; None: all weights. eyes: of a model that reads pictures.
    """
    role = Role.FROZEN if lora else Role.TRAINED
    model.to(dtype(precision, role)).eval()  # type: ignore[arg-type]  # transformers hides Module.to
    if lora is not None:
        inject(model, lora, 0, "learn.policy.lora")
    if recomputed:
        allow_recomputing(model)
    with recomputing(model, recomputed):
        return _measured(model, rows, precision, eyes)


def _measured(
    model: PreTrainedModel, rows: Sequence[Sequence[Row]], precision: Precision, eyes: Eyes | None
) -> int:
    optimizer = torch.optim.AdamW(trained(model).values(), lr=1e-6, foreach=True)
    update(model, optimizer, rows, precision, eyes)
    state = [v for s in optimizer.state.values() for v in s.values()]
    optimizer.zero_grad()
    base = sum(t.nbytes for t in (*model.parameters(), *state))
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        update(model, optimizer, rows, precision, eyes)
    return base + _most(seen)


def _most(seen: profile) -> int:
    """The largest sum of what was allocated within a profile and not yet freed.

    The profiler also sees that memory is freed which an earlier profile of this process saw allocated.
    """
    assert seen.profiler is not None
    assert seen.profiler.kineto_results is not None
    stack: list[Any] = list(seen.profiler.kineto_results.experimental_event_tree())
    events = []
    while stack:
        event = stack.pop()
        stack += event.children
        if event.tag == _EventType.Allocation:
            events.append((event.start_time_ns, event.extra_fields.ptr, event.extra_fields.alloc_size))
    held: dict[int, int] = {}
    now = most = 0
    for _, address, size in sorted(events, key=lambda event: event[0]):
        if size > 0:
            held[address] = size
            now += size
        else:
            now -= held.pop(address, 0)
        most = max(most, now)
    return most


def predicted_step(
    size: Size,
    rows: Sequence[Row],
    precision: Precision,
    *,
    recomputed: bool = False,
    lora: LoraConfig | None = None,
) -> float:
    """The same as the plan says it: of the largest micro-batch, or of the optimizer's step."""
    width = max(len(row.ids) for row in rows)
    targets = sum(len(row.target) for row in rows)
    weight = size.parameters * dtype(precision, Role.TRAINED).itemsize
    tokens, tree = width * len(rows), rows[0].branched
    shown = sum(row.ids.count(MARKS["image_token_id"]) for row in rows if row.images)
    needed = activations(
        size, precision, tokens, width, targets, tree=tree, recomputed=recomputed, lora=lora, shown=shown
    )
    if lora is not None:
        own = 4 * lora_weights(size, lora)
        return size.parameters * dtype(precision, Role.FROZEN).itemsize + 4 * own + max(needed, own)
    copies = 2 * size.parameters if precision == "bf16-mixed" else 0
    return 4 * weight + max(needed + copies, weight)


def update(
    model: PreTrainedModel,
    optimizer: torch.optim.Optimizer,
    rows: Sequence[Sequence[Row]],
    precision: Precision,
    eyes: Eyes | None = None,
) -> None:
    """One update as the module makes it: both micro-batches, the clipped gradient, the step."""
    optimizer.zero_grad()
    with _autocast(precision, model.device.type):
        for micro in rows:
            batch = pack(micro, model.device, eyes)
            (-(batch.weight_n * target_logprobs(model, batch)).sum()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def _autocast(precision: Precision, device: str) -> AbstractContextManager[Any]:
    return torch.autocast(device, dtype=torch.bfloat16) if precision == "bf16-mixed" else nullcontext()
