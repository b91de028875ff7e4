"""Bytes on each device: what lies there throughout, and the largest of what comes and goes.

A trained model has its weights, gradients and two moments of AdamW in the format of its weights. A frozen one has its
weights. Activations are those of the decoders of transformers without checkpointing: what autograd keeps of a layer was
counted tensor by tensor (`layer_bytes`).
"""

from __future__ import annotations

from dataclasses import dataclass

from rlanything.config import Config
from rlanything.engines.placement import Role, dtype
from rlanything.planning.check import NATIVE
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
    used = ["policy", "reward", *(["adapter"] if arm.adapt else [])]
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
    passing += [_sampling(config, calls, sizes[calls.model], width[calls.model]) for calls in work.calls]
    if config.engine[TARGET] == NATIVE:
        lasting += [Part("the sampler's copy", name, sizes[name].parameters * FULL) for name in used]
    if shards > 1:
        passing += [Part("gathered to sample", name, sizes[name].parameters * trained) for name in learns]
    return Memory(tuple(lasting), tuple(passing))


def micro_batch(config: Config, name: str, work: Workload) -> int:
    """Tokens of the largest micro-batch: the limit, or one row that is longer."""
    limit, row = config.learn.micro_batch_tokens, max(1, work.longest_row[name])
    return row if row > limit else limit // row * row


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
    size: Size, precision: str, tokens: float, row: float, targets: float, *, tree: bool
) -> float:
    """Bytes of a micro-batch at their most, at the start of its backward pass.

    `row`: tokens of its longest row. `targets`: how many of the tokens the loss compares.
    """
    narrow = FULL if precision == "32-true" else HALF
    kept = tokens * size.layers * layer_bytes(size, precision, tree=tree)
    ends = tokens * size.hidden * 3 * FULL
    logits = targets * size.vocab * (OF_LOGITS * FULL + (narrow if narrow == HALF else 0))
    mask = tokens * row * _mask_bytes(size, precision) if tree else 0.0
    return kept + ends + logits + mask


def _mask_bytes(size: Size, precision: str) -> int:
    """Bytes of an entry of a tree's mask: the truth value, and the summand; under autocast once more in each layer."""
    if precision == "bf16-mixed":
        return 1 + FULL + HALF * size.layers
    return 1 + (FULL if precision == "32-true" else HALF)


def _learning(config: Config, name: str, size: Size, work: Workload, weight: int, shards: int) -> Part:
    """Activations of a micro-batch, bfloat16 copies of the weights under autocast, gathered shards."""
    tokens = micro_batch(config, name, work)
    needed = activations(
        size,
        config.train.precision,
        tokens,
        work.longest_row[name],
        tokens * work.targets[name],
        tree=name == "reward",
    )
    if config.train.precision == "bf16-mixed":
        needed += size.parameters * HALF
    if shards > 1:
        needed += 2 * size.parameters / max(1, size.layers) * weight
    return Part("activations", name, needed)


def _stepping(name: str, size: Size, weight: float) -> Part:
    """What AdamW computes for all weights at once: the root of the second moment."""
    return Part("AdamW's step", name, size.parameters * weight)


def _sampling(config: Config, calls: Calls, size: Size, width: int) -> Part:
    """The largest batch that an engine decodes: keys and values, logits, and one layer's work on the prompts."""
    rows = min(int(config.engine.get("max_batch", 1)), calls.count)
    cache = rows * calls.longest * size.layers * 2 * size.kv * width
    logits = 2 * rows * size.vocab * FULL
    prompts = rows * (calls.longest - calls.written / calls.count)
    reading = prompts * (3 * size.intermediate + 4 * size.hidden) * width
    return Part(f"keys, values and prompts ({calls.name})", calls.model, cache + logits + reading)
