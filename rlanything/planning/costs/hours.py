"""Estimates the time of an iteration and of each stage from operations, bytes, and the share of its peak that a device
reaches.

Reading prompts and training are bound by operations: 2 for each parameter and token to read, 6 to train, 4 with LoRA,
and 2 more with gradient checkpointing. The parameters of a vision tower count for the patches of pictures instead.
Decoding is bound by memory bandwidth: each step of a batch reads all weights and the keys and values of its rows. The
host starts the kernels of an accelerator one by one (`LAYER_S`), which takes longer for small models and batches. vLLM
decodes no more rows at once than its cache holds (`cache.rows_held`). The operations of attention itself, the
environment and the file system are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass

from rlanything.config import Config
from rlanything.engines.placement import SHARDED, Role, weight_bytes
from rlanything.planning.costs.cache import parts, rows_held, token_bytes, training_parts
from rlanything.planning.costs.devices import CPU, Device
from rlanything.planning.costs.endpoints import endpoint_of
from rlanything.planning.costs.sizes import Size
from rlanything.planning.costs.work.measuring import JUDGE, OTHER_POLICY, SOLVER, StageWork
from rlanything.planning.costs.work.workload import Calls, Workload
from rlanything.planning.samplers import SERVERS, VLLM
from rlanything.targets import TARGET

LAYER_S = 1.3e-3
"""Seconds in which the host starts the kernels of one layer of a forward pass, one by one. Fitted to the engine
`transformers` and to updates beside one H100 (docs/plan.md, "Measured on a GPU"); another host may take half as long,
or twice. Assumed for vLLM without CUDA graphs."""
LEARNING = 4
"""How many times as long that takes with the backward pass, fitted there."""
GRAPH_S = 0.018
"""Seconds that a decoding step of vLLM takes at least where it is one CUDA graph. Measured there in the process (128
steps in 2.28 s, the prompts in its cache), for 0.5B weights and 256 tokens drawn among 152 thousand; assumed for other
models and for servers."""


@dataclass(frozen=True)
class Hours:
    """Seconds of one iteration by phase, with the work divided among all devices, and hours of all iterations."""

    phases: dict[str, float]
    hours: float

    @property
    def iteration(self) -> float:
        """Seconds of one iteration."""
        return sum(self.phases.values())


def hours(
    config: Config, arm_name: str, sizes: dict[str, Size], work: Workload, device: Device, devices: int
) -> Hours:
    """The time of all iterations and seeds of an arm, without the panels of the learning curve."""
    learns = learning(config, arm_name)
    cache, phases = parts_of_training(config, arm_name, sizes), {}
    for calls in work.calls:
        width = width_of(config, calls.model, learns)
        phases[calls.name] = _sampled(config, calls, sizes[calls.model], width, device, devices, cache)
    for name in sorted(learns):
        forward = (
            config.learn.kl_reference == "base",
            config.learn.importance == "recomputed",
            config.learn.recomputes(name),
        )
        lora, tokens, size = name in config.learn.lora, work.trained[name] / devices, sizes[name]
        half = config.precision(name) != "32-true"
        phases[f"learn, {name}"] = updating(
            size, tokens, _micro_batches(config, tokens), device, half=half, lora=lora, again=sum(forward)
        )
        if size.tower is not None:
            # With LoRA the tower is frozen: it has no backward pass, before which it would be computed again.
            looks = 2 * (1 + sum(forward[:2])) if lora else 6 + 2 * sum(forward)
            operations = looks * size.tower.products(work.shown[name] / devices)
            phases[f"learn, {name}"] += operations / _speed(device, half)
    total = sum(phases.values()) * config.train.iterations * _rounds(config, device) / 3600
    return Hours(phases, total)


def updating(
    size: Size, tokens: float, micro_batches: float, device: Device, *, half: bool, lora: bool, again: int
) -> float:
    """Seconds in which a device learns from tokens, cut into micro-batches. A vision tower is left out.

    half: whether it computes in bfloat16. again: passes besides the forward and the backward one.
    """
    operations = ((4 if lora else 6) + 2 * again) * products_of(size) * tokens
    started = starting(size, device) * micro_batches * (LEARNING + again)
    return operations / _speed(device, half) + started


def _micro_batches(config: Config, tokens: float) -> float:
    """How many micro-batches an iteration has at least."""
    updates = config.learn.updates
    return updates * math.ceil(tokens / updates / config.learn.micro_batch_tokens)


def _speed(device: Device, half: bool) -> float:
    """Operations a second that a device reaches."""
    return device.of_flops * (device.half_flops if half else device.full_flops)


def starting(size: Size, device: Device) -> float:
    """Seconds in which the host starts a forward pass. The measured speed of a CPU holds them already."""
    return 0.0 if device.name == CPU else LAYER_S * size.layers


def stage_hours(
    config: Config,
    stage: StageWork,
    learns: Container[str],
    sizes: Mapping[str, Size],
    device: Device,
    devices: int,
    cache: Mapping[str, float],
) -> float:
    """Hours of a stage, all seeds. Outside a training every model is frozen.

    learns: the models that train where the stage is part of a training. cache: see `parts_of_stage`.
    """
    seconds = 0.0
    for calls in stage.calls:
        width = width_of(config, calls.model, learns if stage.training else ())
        seconds += _sampled(config, calls, sizes[calls.model], width, device, devices, cache)
    rounds = _rounds(config, device) if stage.every_seed else 1
    return seconds * stage.times * rounds / 3600


def parts_of_training(config: Config, arm_name: str, sizes: Mapping[str, Size]) -> dict[str, float]:
    """The part of vLLM's cache that each model has while an arm trains."""
    learns = learning(config, arm_name)
    return training_parts(config, arm_name, learns, sizes, lambda name: width_of(config, name, learns))


def parts_of_stage(
    config: Config, stage: StageWork, training: Mapping[str, float], sizes: Mapping[str, Size]
) -> Mapping[str, float]:
    """The same in a stage. training: `parts_of_training`, of which the stage may be a part."""
    if stage.training:
        return training
    models = {calls.model for calls in stage.calls}
    if stage.together:
        return parts(config, models, sizes, lambda name: width_of(config, name, ()))
    return dict.fromkeys(models, 1.0)


def width_of(config: Config, model: str, learns: Container[str]) -> int:
    """Bytes of a weight of the model that samples. With LoRA the weights are frozen, and so is the copy of `fsdp`.

    Other policies are loaded as the policy is, and judges as the reward model.
    """
    trained = model in learns and model not in config.learn.lora and config.train.strategy != SHARDED
    like = "policy" if model in (SOLVER, OTHER_POLICY) else "reward" if model.startswith(JUDGE) else model
    return weight_bytes(config.precision(like), Role.TRAINED if trained else Role.FROZEN)


def learning(config: Config, arm_name: str) -> tuple[str, ...]:
    """The models that an arm trains."""
    return ("policy", "reward") if config.arm(arm_name).train_reward else ("policy",)


def _rounds(config: Config, device: Device) -> int:
    """How many rounds of seeds run one after another. Seeds that share an accelerator take as long as in turn."""
    side_by_side = config.train.seeds_at_once if device.name == CPU else 1
    return math.ceil(config.train.seeds / side_by_side)


def products_of(size: Size) -> int:
    """Parameters in the matrix products of a token: all but an untied embedding and a vision tower."""
    return size.parameters - size.embedding - (size.tower.parameters if size.tower else 0)


def _sampled(
    config: Config,
    calls: Calls,
    size: Size,
    width: int,
    device: Device,
    devices: int,
    cache: Mapping[str, float],
) -> float:
    """The seconds of `sampling` with the configured engine. A model behind an endpoint takes none here.

    cache: the part of vLLM's cache that each model has.
    """
    if endpoint_of(config, calls.model) is not None:
        return 0.0
    graphs = config.engine[TARGET] in (VLLM, SERVERS) and not config.engine.get("eager", True)
    least = GRAPH_S if graphs and device.name != CPU else starting(size, device)
    most = int(config.engine.get("max_batch", 1))
    held = rows_held(config, calls.longest, token_bytes(config, size, width), cache[calls.model])
    most = most if held is None else min(most, held)
    return sampling(calls, size, device, most=most, width=width, least=least, devices=devices)


def sampling(
    calls: Calls, size: Size, device: Device, *, most: int, width: int, least: float, devices: int = 1
) -> float:
    """Seconds to read the prompts and to write the replies of some calls.

    most: prompts at once. width: bytes of a weight. least: seconds that a decoding step takes at least.
    """
    speed = _speed(device, width == 2)
    products = products_of(size) * calls.read + (size.tower.products(calls.seen) if size.tower else 0.0)
    reading = 2 * products / (speed * devices)
    rows = max(1.0, min(most, calls.at_once / devices))
    steps = calls.written / rows / devices
    held = rows * calls.longest * size.layers * 2 * size.kv * width
    moved = (products_of(size) * width + held) / (device.of_bandwidth * device.bandwidth)
    counted = 2 * products_of(size) * rows / speed
    return reading + steps * max(moved, counted, least)
