"""Finds the fewest changes of the configuration with which a training fits into memory, or else more devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from rlanything.config import Config, OptimizerConfig
from rlanything.engines.placement import SHARDED
from rlanything.planning.checkpoints import NARROW
from rlanything.planning.samplers import VLLM
from rlanything.targets import TARGET

SMALLEST_MICRO_BATCH = 512
MOST_DEVICES = 1024
WORKERS, BATCH, MICRO, AGAIN, HALF, SHARD = (
    "train.workers",
    "engine.max_batch",
    "learn.micro_batch_tokens",
    "learn.gradient_checkpointing",
    "train.precision",
    "train.strategy",
)
CHANGES = (WORKERS, BATCH, MICRO, AGAIN, HALF, SHARD)
"""The keys that may be changed, from cheap to costly: one seed at a time, smaller batches, gradient checkpointing,
bfloat16 weights, models divided among devices."""


@dataclass(frozen=True)
class Setting:
    """A configuration and a number of devices. changes: the changes that lead to it, as overrides."""

    config: Config
    devices: int
    changes: tuple[str, ...] = ()


Bytes = Callable[[Config, int], float]
"""(configuration, devices) -> bytes on the fullest device."""


def nearest(config: Config, devices: int, needed: Bytes, room: float) -> tuple[Setting, float] | None:
    """The setting with the fewest devices that fits into `room` bytes, and its bytes; None where none does.

    Of several it takes the one with the fewest changes, then the one whose costliest change is cheapest, then the one
    with the least memory.
    """
    start, needed = Setting(config, devices), _once_each(needed)
    barred = {WORKERS: config.train.seeds_at_once == 1, SHARD: not _divisible(config)}
    allowed = [key for key in CHANGES if not barred.get(key, False)]
    found = [
        (setting.devices, count, _dearest(keys), needed(setting.config, setting.devices), setting)
        for count in range(1, len(allowed) + 1)
        for keys in combinations(allowed, count)
        for setting in _changed(start, keys, needed, room)
    ]
    if not found:
        return None
    *_, taken, best = min(found, key=lambda each: each[:4])
    return best, taken


def staying(config: Config, devices: int, lasting: Bytes) -> float:
    """The bytes that are always on a device, whatever is changed. lasting: those of a setting."""
    least = _narrow(_train(Setting(config, devices), workers=1))
    while (smaller := _halved(least, BATCH)) is not None:
        least = smaller
    if _divisible(config):
        least = replace(_train(least, strategy=SHARDED), devices=max(devices, MOST_DEVICES))
    return min(lasting(config, devices), lasting(least.config, least.devices))


def _divisible(config: Config) -> bool:
    """Whether more devices help. Of a model with LoRA only LoRA's weights are divided, which are few."""
    return bool({"policy", "reward"} - config.learn.lora.keys()) and not alone(config)


def alone(config: Config) -> str:
    """Which setting lets one process alone train, e.g. `engine=vllm`; '' for none."""
    if config.engine[TARGET] == VLLM:
        return "engine=vllm"
    return f"train.staleness={config.train.staleness}" if config.train.staleness else ""


def _once_each(needed: Bytes) -> Bytes:
    """`needed`, computed once for the same values of what may be changed: the search meets most settings many times."""
    known: dict[tuple[object, ...], float] = {}

    def remembered(config: Config, devices: int) -> float:
        values = tuple(value for _, value in _values(Setting(config, devices)))
        if values not in known:
            known[values] = needed(config, devices)
        return known[values]

    return remembered


def _values(setting: Setting) -> tuple[tuple[str, object], ...]:
    """(key, value) of everything that may be changed.

    The value of `SHARD` has the number of devices, that of `HALF` the precisions of models that have their own.
    """
    config = setting.config
    return (
        (WORKERS, config.train.workers),
        (BATCH, config.engine.get("max_batch")),
        (MICRO, config.learn.micro_batch_tokens),
        (AGAIN, config.learn.gradient_checkpointing),
        (HALF, (config.train.precision, *config.learn.precisions.items())),
        (SHARD, (config.train.strategy, setting.devices)),
    )


def _dearest(keys: tuple[str, ...]) -> int:
    """The index in `CHANGES` of the costliest change. Both batch sizes have the same cost."""
    return max(CHANGES.index(MICRO if key == BATCH else key) for key in keys)


def _changed(start: Setting, keys: tuple[str, ...], needed: Bytes, room: float) -> Iterator[Setting]:
    """The setting that fits and changes exactly `keys`, if there is one."""
    setting = start
    if WORKERS in keys:
        setting = _train(setting, workers=1)
    if AGAIN in keys:
        setting = _learn(setting, gradient_checkpointing=True)
    if HALF in keys:
        setting = _narrow(setting)
    for devices in _counts(start.devices) if SHARD in keys else [start.devices]:
        tried = replace(setting, devices=devices)
        if SHARD in keys:
            tried = _train(tried, strategy=SHARDED)
        tried = _reduced(tried, [key for key in (BATCH, MICRO) if key in keys], needed, room)
        changes = _written(start, tried)
        if needed(tried.config, devices) <= room and len(changes) == len(keys):
            yield replace(tried, changes=changes)
            return


def _counts(devices: int) -> Iterator[int]:
    """Numbers of devices to try: the given one (at least 2), doubled up to `MOST_DEVICES`."""
    count = max(2, devices)
    while count <= MOST_DEVICES:
        yield count
        count *= 2


def _reduced(setting: Setting, keys: list[str], needed: Bytes, room: float) -> Setting:
    """The setting with the values of `keys` halved until it fits or nothing helps.

    Each step halves the value that saves most memory."""
    while (now := needed(setting.config, setting.devices)) > room:
        smaller = [s for s in (_halved(setting, key) for key in keys) if s is not None]
        best = min(smaller, key=lambda s: needed(s.config, s.devices), default=None)
        if best is None or needed(best.config, best.devices) >= now:
            return setting
        setting = best
    return setting


def _halved(setting: Setting, key: str) -> Setting | None:
    """The setting with the value of `key` halved; None when it is at its minimum."""
    config = setting.config
    if key == BATCH:
        rows = int(config.engine.get("max_batch", 1))
        engine = {**config.engine, "max_batch": rows // 2}
        return replace(setting, config=config.model_copy(update={"engine": engine})) if rows > 1 else None
    tokens = config.learn.micro_batch_tokens // 2
    if tokens < SMALLEST_MICRO_BATCH:
        return None
    return _learn(setting, micro_batch_tokens=tokens)


def _wider(setting: Setting) -> list[str]:
    """The models whose own precision would keep them from bfloat16."""
    return [name for name, precision in setting.config.learn.precisions.items() if precision != NARROW]


def _narrow(setting: Setting) -> Setting:
    """The setting with all weights in bfloat16."""
    learn = setting.config.learn
    removed = {name: getattr(learn, name).model_copy(update={"precision": None}) for name in _wider(setting)}
    return _train(_learn(setting, **removed), precision=NARROW)


def _learn(setting: Setting, **values: int | OptimizerConfig) -> Setting:
    learn = setting.config.learn.model_copy(update=values)
    return replace(setting, config=setting.config.model_copy(update={"learn": learn}))


def _train(setting: Setting, **values: str | int) -> Setting:
    train = setting.config.train.model_copy(update=values)
    return replace(setting, config=setting.config.model_copy(update={"train": train}))


def _written(start: Setting, end: Setting) -> tuple[str, ...]:
    """The changes between two settings, as overrides."""
    pairs = zip(_values(start), _values(end), strict=True)
    changed = [(key, value) for (key, before), (_, value) in pairs if before != value]
    return tuple(_override(start, end, key, value) for key, value in changed)


def _override(start: Setting, end: Setting, key: str, value: object) -> str:
    """A change as a user writes it."""
    if key == SHARD:
        return f"{key}={end.config.train.strategy} on {end.devices} devices"
    if key == HALF:
        removed = [f"learn.{name}.precision=null" for name in _wider(start)]
        return " ".join([f"{key}={end.config.train.precision}", *removed])
    return f"{key}={str(value).lower()}"
