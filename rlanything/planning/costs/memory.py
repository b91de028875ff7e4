"""Bytes on each device: lasting parts such as weights, and temporary parts, of which the largest counts.

A trained model needs weights, gradients and two moments of AdamW, all in the number format of its weights. A frozen
model needs its weights. With LoRA a model is frozen, and only LoRA's float32 weights have gradients and moments. With
`train.strategy=fsdp` each device has a part of what trains, and with `train.offload` it has that in the host's memory.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rlanything.config import Config
from rlanything.engines.placement import SHARDED, Role, weight_bytes
from rlanything.planning.costs.activations import activations
from rlanything.planning.costs.cache import cache_bytes, copied, given, replicas
from rlanything.planning.costs.low_rank import learned, lora_weights, sharing
from rlanything.planning.costs.sizes import Size
from rlanything.planning.costs.work.prompts import Rows
from rlanything.planning.costs.work.workload import Calls, Workload
from rlanything.planning.samplers import NATIVE, SERVERS, VLLM, loaded, lora_apart
from rlanything.targets import TARGET

HALF, FULL = 2, 4
BATCHED = 8192
"""vLLM's `max_batched_tokens` where the configuration has none: that of `engines.vllm.support.Options`."""
DRAW = 28
"""Bytes that drawing a token takes for each id of the vocabulary: scores twice in float32, probabilities at temperature
1 and at another, what tokens are masked with, and their sums in float64."""
LOOKED = 16_384
"""Tokens of pictures that vLLM may look at together in any case: `engines.sight.eyes.MOST_TOKENS`."""


@dataclass(frozen=True)
class Part:
    """A part of the memory of a device. model: the model that it belongs to."""

    name: str
    model: str
    bytes: float


@dataclass(frozen=True)
class Memory:
    """Bytes on the fullest device."""

    lasting: tuple[Part, ...]
    """Parts that are always there from the second iteration on."""
    passing: tuple[Part, ...]
    """Parts that are needed one after the other, so only the largest counts."""
    host: tuple[Part, ...] = ()
    """What each process has in the host's memory because of `train.offload`. No part of the peak."""
    seeds: int = 1
    """How many seeds train on the device at once. Each has all parts for itself."""

    @property
    def peak(self) -> float:
        """The most bytes at once."""
        return self.always + self.seeds * max((part.bytes for part in self.passing), default=0.0)

    @property
    def always(self) -> float:
        """The bytes of what is always there."""
        return self.seeds * sum(part.bytes for part in self.lasting)


def memory(config: Config, arm_name: str, sizes: dict[str, Size], work: Workload, devices: int) -> Memory:
    """The memory of a training on `devices` devices. `train.strategy` divides or copies the models.

    One device has all seeds that train at once. Several are of one seed.
    """
    arm, train = config.arm(arm_name), config.train
    learns = ["policy", *(["reward"] if arm.train_reward else [])]
    used = loaded(config, arm)
    shards = devices if train.strategy == SHARDED else 1
    trained = {name: weight_bytes(config.precision(name), Role.TRAINED) for name in used}
    frozen = {name: weight_bytes(config.precision(name), Role.FROZEN) for name in used}
    lasting: list[Part] = []
    host: list[Part] = []
    shared, lora = sharing(config, arm, used, learns), config.learn.lora
    for name in used:
        if (name not in learns or name in lora) and name not in shared:
            lasting.append(Part("weights, frozen", name, sizes[name].parameters * frozen[name]))
        if name in learns:
            if name in lora:
                divided, copies = _low_rank(config, name, lora_weights(sizes[name], lora[name]), devices)
            else:
                divided, copies = _trained(config, name, sizes[name].parameters, devices)
            (host if train.offload else lasting).extend(divided)
            lasting += copies
        elif name in lora and name == "reward" and arm.reward_from:
            lasting.append(Part("LoRA's weights", name, lora_weights(sizes[name], lora[name]) * FULL))
    passing = [_learning(config, name, sizes[name], work, shards) for name in learns]
    steps = [_stepping(name, *learned(config, name, sizes[name]), shards) for name in learns]
    if train.offload:
        host.append(max(steps, key=lambda part: part.bytes))
    else:
        passing += steps
    sampled = frozen if train.strategy == SHARDED else trained
    width = {name: (sampled if name in learns and name not in lora else frozen)[name] for name in used}
    served: list[Part] = []
    for calls in work.calls:
        part = _sampling(config, calls, sizes[calls.model], width[calls.model], devices)
        ahead = train.staleness and calls.model == "policy"  # it samples while everything else goes on
        (served if config.engine[TARGET] == SERVERS else lasting if ahead else passing).append(part)
    lasting += [] if given(config) else _largest(served)
    lasting += _copies(config, _counted(config, sizes, used, shared), width)
    return Memory(tuple(lasting), tuple(passing), tuple(host), train.seeds_at_once if devices == 1 else 1)


def _counted(
    config: Config, sizes: Mapping[str, Size], used: Iterable[str], shared: Collection[str]
) -> dict[str, int]:
    """How many weights an engine holds of each model. shared: the models whose frozen weights another one has.

    vLLM in the trainer's process has frozen weights once where LoRA's are kept apart.
    """
    counted = {name: sizes[name].parameters for name in used}
    if config.engine[TARGET] == VLLM:
        apart = [name for name in counted if lora_apart(config, name)]
        counted |= {name: 0 for name in apart if name in shared}
        for name in apart:
            if name in config.learn.lora:
                counted[name] += lora_weights(sizes[name], config.learn.lora[name])
    return {name: count for name, count in counted.items() if count}


def _copies(config: Config, parameters: Mapping[str, int], width: Mapping[str, int]) -> list[Part]:
    """What an engine holds beside the models that it is given. width: bytes of a weight of each model."""
    copies = {name: count * copied(config, width[name]) for name, count in parameters.items()}
    if config.engine[TARGET] == NATIVE:
        return [Part("the sampler's copy", name, count * FULL) for name, count in parameters.items()]
    if config.engine[TARGET] == VLLM:
        weights = [Part("vLLM's copy", name, of) for name, of in copies.items()]
        return [*weights, Part("vLLM's keys and values", "all", cache_bytes(config))]
    if config.engine[TARGET] == SERVERS and not given(config):
        return _served(config, copies)
    return []


def _served(config: Config, copies: Mapping[str, float]) -> list[Part]:
    """What vLLM's servers have on a device. Each process that trains has its own, on its own device.

    copies: bytes of each model's weights.
    """
    weights = [Part("its servers' copies", name, replicas(config) * of) for name, of in copies.items()]
    return [*weights, Part("servers' keys and values", "all", cache_bytes(config))]


def _largest(parts: Iterable[Part]) -> list[Part]:
    """The largest part of each model. A server is a process of its own, and keeps the memory that it has had."""
    by_size = sorted(parts, key=lambda part: part.bytes)
    return list({part.model: part for part in by_size if part.bytes}.values())


def _trained(config: Config, name: str, count: int, devices: int) -> tuple[list[Part], list[Part]]:
    """What a model of `count` parameters that trains has at all times: what `fsdp` divides, and the rest."""
    train = config.train
    trained, frozen = (weight_bytes(config.precision(name), role) for role in (Role.TRAINED, Role.FROZEN))
    share = count * trained / (devices if train.strategy == SHARDED else 1)
    divided = [
        Part("weights", name, share),
        Part("gradients", name, share),
        Part("moments of AdamW", name, 2 * share),
    ]
    rest = []
    if train.strategy == SHARDED:
        rest.append(Part("the whole copy that samples", name, count * frozen))
    elif devices > 1:
        rest.append(Part("buckets of gradients", name, share))
    if config.learn.kl_reference == "base":
        rest.append(Part("reference", name, count * frozen))
    return divided, rest


def _low_rank(config: Config, name: str, count: int, devices: int) -> tuple[list[Part], list[Part]]:
    """What LoRA's `count` weights of a model have at all times: what `fsdp` divides, and the rest."""
    sharded = config.train.strategy == SHARDED
    share = count * FULL / (devices if sharded else 1)
    divided = [
        Part("LoRA's weights", name, share),
        Part("gradients of LoRA", name, share),
        Part("moments of AdamW of LoRA", name, 2 * share),
    ]
    if sharded:
        return divided, [Part("LoRA's weights that sample", name, count * FULL)]
    return divided, [Part("buckets of gradients", name, share)] if devices > 1 else []


def micro_batches(config: Config, rows: Sequence[Rows]) -> list[Rows]:
    """The largest micro-batch for each length of rows, with its number of rows in `count`.

    A row that is longer than a micro-batch may be is alone in one."""
    limit, learn = config.learn.micro_batch_tokens, config.learn
    update = math.ceil(sum(row.count for row in rows) / learn.updates)
    return [replace(row, count=max(1, min(limit // row.tokens, update))) for row in rows]


def _learning(config: Config, name: str, size: Size, work: Workload, shards: int) -> Part:
    """Memory of learning: activations of a micro-batch, bfloat16 copies of weights under autocast, gathered shards."""
    precision, tree = config.precision(name), name == "reward"
    needed = max(
        activations(
            size,
            precision,
            b.count * b.tokens,
            b.tokens,
            b.count * b.targets,
            tree=tree,
            recomputed=config.learn.recomputes(name),
            lora=config.learn.lora.get(name),
            shown=b.count * b.shown,
        )
        for b in micro_batches(config, work.rows[name])
    )
    if precision == "bf16-mixed" and name not in config.learn.lora:
        needed += size.parameters * HALF
    what = "activations"
    if shards > 1 or config.train.offload:
        needed += _gathered(config, name, size)
        late = config.train.exchange == "last"
        what = "activations and whole gradients" if late else "activations and gathered weights"
    return Part(what, name, needed)


def _gathered(config: Config, name: str, size: Size) -> float:
    """Bytes of weights and gradients that FSDP has whole while a micro-batch learns, at most.

    Two layers: the weights of one are gathered while another computes, and the gradients of one are divided while those
    of another are made. What is outside the layers is FSDP's root, which PyTorch keeps whole from its first use to the
    end of the backward pass, and so its gradients. With LoRA nothing outside the layers trains. With
    `train.exchange: last` all gradients stay whole until the last micro-batch of a step.
    """
    count, weight = learned(config, name, size)
    root = 0 if name in config.learn.lora else size.outside
    layer = (count - root) / max(1, size.layers)
    gradients = count if config.train.exchange == "last" else root
    return (root + gradients + 2 * 2 * layer) * weight


def _stepping(name: str, count: int, weight: int, shards: int) -> Part:
    """Memory of an AdamW step: the square root of the second moment, for all `count` weights at once.

    weight: bytes of one.
    """
    return Part("AdamW's step", name, count * weight / shards)


def _sampling(config: Config, calls: Calls, size: Size, width: int, devices: int) -> Part:
    """The largest batch that an engine decodes: keys and values, logits, and one layer's work on prompts or pictures.

    The devices divide the calls, and so do the servers of a model. vLLM has a place for keys and values from the start.
    It reads no more tokens at once than `max_batched_tokens`, and looks at as many tokens of pictures, or at `LOOKED`.
    Its place may hold more rows than `cache.rows_held`, which is no bound of this memory.
    """
    servers = replicas(config)
    rows = min(int(config.engine.get("max_batch", 1)), math.ceil(calls.at_once / devices / servers))
    cache = rows * calls.longest * size.layers * 2 * size.kv * width
    logits = rows * size.vocab * DRAW
    prompts = rows * (calls.longest - calls.written / calls.count)
    shown = float(rows * calls.shown)
    if config.engine[TARGET] in (VLLM, SERVERS):
        most = int(config.engine.get("max_batched_tokens", BATCHED))
        cache, prompts, shown = 0, min(prompts, most), min(shown, max(most, LOOKED))
    reading = prompts * (3 * size.intermediate + 4 * size.hidden) * width
    looking = 0.0
    if size.tower is not None:
        patches = size.tower.patches(shown)
        looking = size.tower.pixels(patches) + size.tower.working(patches, width)
    return Part(
        f"keys, values and prompts ({calls.name})",
        calls.model,
        servers * (cache + logits + max(reading, looking)),
    )
