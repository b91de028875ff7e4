"""Bytes on each device: what lies there throughout, and the largest of what comes and goes.

A trained model has its weights, gradients and two moments of AdamW in the format of its weights. A frozen one has its
weights. Activations are those of the decoders of transformers: what autograd keeps of a layer was counted tensor by
tensor (`layer_bytes`). With checkpointing it keeps the input of every layer, and all of one layer at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rlanything.config import Config
from rlanything.engines.placement import Role, dtype
from rlanything.planning.check import NATIVE
from rlanything.planning.costs.prompts import Rows
from rlanything.planning.costs.sizes import Size
from rlanything.planning.costs.workload import Calls, Workload
from rlanything.targets import TARGET

HALF, FULL = 2, 4
SHARDED = "fsdp"
OF_LOGITS = 4
"""Copies of the logits in float32 at the end of a micro-batch: themselves, their exponentials, two gradients."""


@dataclass(frozen=True)
class Part:
    """Some bytes on a device. `model`: whose they are."""

    name: str
    model: str
    bytes: float


@dataclass(frozen=True)
class Memory:
    """Bytes on the fullest device."""

    lasting: tuple[Part, ...]
    """There from the second iteration on, whatever runs."""
    passing: tuple[Part, ...]
    """Needed one after the other: of these the largest counts."""

    @property
    def peak(self) -> float:
        """The most bytes at once."""
        return sum(part.bytes for part in self.lasting) + max(
            (part.bytes for part in self.passing), default=0.0
        )


def memory(config: Config, arm_name: str, sizes: dict[str, Size], work: Workload, devices: int) -> Memory:
    """The memory of a training of one seed on `devices` devices, `train.strategy` dividing or copying the models."""
    arm, train = config.arm(arm_name), config.train
    learns = ["policy", *(["reward"] if arm.train_reward else [])]
    loaded = {"policy": True, "reward": not config.judge_for(arm).is_oracle, "adapter": arm.adapt}
    used = [name for name, is_loaded in loaded.items() if is_loaded]
    shards = devices if train.strategy.startswith(SHARDED) else 1
    copied = devices > 1 and shards == 1
    trained, frozen = (dtype(train.precision, role).itemsize for role in (Role.TRAINED, Role.FROZEN))
    lasting: list[Part] = []
    for name in used:
        count = sizes[name].parameters
        if name not in learns:
            lasting.append(Part("weights, frozen", name, count * frozen))
            continue
        share = count * trained / shards
        lasting += [
            Part("weights", name, share),
            Part("gradients", name, share),
            Part("moments of AdamW", name, 2 * share),
        ]
        if copied:
            lasting.append(Part("buckets of gradients", name, share))
        if config.learn.kl_reference == "base":
            lasting.append(Part("reference", name, count * frozen))
    passing = [_learning(config, name, sizes[name], work, trained, shards) for name in learns]
    passing += [_stepping(name, sizes[name], trained / shards) for name in learns]
    width = {name: trained if name in learns else frozen for name in used}
    passing += [
        _sampling(config, calls, sizes[calls.model], width[calls.model], devices) for calls in work.calls
    ]
    if config.engine[TARGET] == NATIVE:
        lasting += [Part("the sampler's copy", name, sizes[name].parameters * FULL) for name in used]
    if shards > 1:
        passing += [Part("gathered to sample", name, sizes[name].parameters * trained) for name in learns]
    return Memory(tuple(lasting), tuple(passing))


def micro_batches(config: Config, rows: Sequence[Rows]) -> list[Rows]:
    """The fullest micro-batch of rows of each length; `count` is how many rows it has. A longer row is alone."""
    limit, learn = config.learn.micro_batch_tokens, config.learn
    update = math.ceil(sum(row.count for row in rows) / learn.updates)
    return [replace(row, count=max(1, min(limit // row.tokens, update))) for row in rows]


def layer_bytes(size: Size, precision: str, *, tree: bool) -> float:
    """Bytes that autograd keeps of one token in one layer.

    In units of a token's entries: four or six of the width (two norms with their inputs, the inputs of the
    projections), queries, keys, values and the attended values, and four of the feed-forward layer. A tree's mask makes
    attention repeat keys and values for every head.
    """
    hidden, attention, heads = size.hidden, size.attention, size.heads
    keys = 2 * (attention if tree else size.kv)
    wide = 2 * attention + keys + 4 * size.intermediate
    per_head = 2 * (attention + size.kv) + heads + size.kv_heads if size.normed_heads else 0
    if precision == "32-true":
        return FULL * (6 * hidden + wide + per_head + heads + 2)
    half_heads = 0.75 * FULL * per_head
    if precision == "bf16-mixed":
        return FULL * (4 * hidden + heads + 2) + HALF * (5 * hidden + wide) + half_heads
    return FULL * (2 * hidden + heads + 2) + HALF * (4 * hidden + wide) + half_heads


def activations(
    size: Size,
    precision: str,
    tokens: float,
    row: float,
    targets: float,
    *,
    tree: bool,
    recomputed: bool = False,
) -> float:
    """Bytes of a micro-batch at their most: at the start of its backward pass, or while a layer is computed again.

    `row`: tokens of its longest row. `targets`: how many of the tokens the loss compares. `recomputed`: with gradient
    checkpointing.
    """
    narrow = FULL if precision == "32-true" else HALF
    layer = tokens * layer_bytes(size, precision, tree=tree)
    ends = tokens * size.hidden * 3 * FULL
    logits = targets * size.vocab * (OF_LOGITS * FULL + (narrow if narrow == HALF else 0))
    layers = 1 if recomputed else size.layers
    mask = tokens * row * _mask_bytes(layers, precision) if tree else 0.0
    if not recomputed:
        return size.layers * layer + ends + logits + mask
    inputs = tokens * size.layers * size.hidden * (HALF if precision == "bf16-true" else FULL)
    gradients = tokens * 2 * size.intermediate * narrow  # of both factors of the feed-forward layer
    return inputs + ends + max(layer + gradients, logits) + mask


def _mask_bytes(layers: int, precision: str) -> int:
    """Bytes of an entry of a tree's mask: the truth value, and the summand; under autocast once more in each layer."""
    if precision == "bf16-mixed":
        return 1 + FULL + HALF * layers
    return 1 + (FULL if precision == "32-true" else HALF)


def _learning(config: Config, name: str, size: Size, work: Workload, weight: int, shards: int) -> Part:
    """Activations of a micro-batch, bfloat16 copies of the weights under autocast, gathered shards."""
    precision, tree = config.train.precision, name == "reward"
    needed = max(
        activations(
            size,
            precision,
            b.count * b.tokens,
            b.tokens,
            b.count * b.targets,
            tree=tree,
            recomputed=config.learn.gradient_checkpointing,
        )
        for b in micro_batches(config, work.rows[name])
    )
    if config.train.precision == "bf16-mixed":
        needed += size.parameters * HALF
    if shards > 1:
        needed += 2 * size.parameters / max(1, size.layers) * weight
    return Part("activations", name, needed)


def _stepping(name: str, size: Size, weight: float) -> Part:
    """What AdamW computes for all weights at once: the root of the second moment."""
    return Part("AdamW's step", name, size.parameters * weight)


def _sampling(config: Config, calls: Calls, size: Size, width: int, devices: int) -> Part:
    """The largest batch that an engine decodes: keys and values, logits, and one layer's work on the prompts.

    The devices divide the calls.
    """
    rows = min(int(config.engine.get("max_batch", 1)), math.ceil(calls.at_once / devices))
    cache = rows * calls.longest * size.layers * 2 * size.kv * width
    logits = 2 * rows * size.vocab * FULL
    prompts = rows * (calls.longest - calls.written / calls.count)
    reading = prompts * (3 * size.intermediate + 4 * size.hidden) * width
    return Part(f"keys, values and prompts ({calls.name})", calls.model, cache + logits + reading)
