"""What would fit: the fewest changes of the configuration, or more devices, with which a training fits a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from rlanything.config import Config

SMALLEST_MICRO_BATCH = 512
MOST_DEVICES = 1024
BATCH, MICRO, HALF, SHARD = (
    "engine.max_batch",
    "learn.micro_batch_tokens",
    "train.precision",
    "train.strategy",
)
CHANGES = (BATCH, MICRO, HALF, SHARD)
"""What may be changed: two numbers made smaller, bfloat16 weights, models divided among devices."""


@dataclass(frozen=True)
class Setting:
    """A configuration and a number of devices, with the changes that lead to them as a user writes them."""

    config: Config
    devices: int
    changes: tuple[str, ...] = ()


Bytes = Callable[[Config, int], float]
"""(configuration, devices) -> bytes on the fullest device."""


def nearest(config: Config, devices: int, needed: Bytes, room: float) -> tuple[Setting, float] | None:
    """The setting with the fewest changes that fits into `room` bytes, and its bytes; None where none does.

    Of several the one with the fewest devices, then the one that leaves most room.
    """
    start = Setting(config, devices)
    for count in range(1, len(CHANGES) + 1):
        found = [s for keys in combinations(CHANGES, count) for s in _changed(start, keys, needed, room)]
        if found:
            best = min(found, key=lambda s: (s.devices, needed(s.config, s.devices)))
            return best, needed(best.config, best.devices)
    return None


def _changed(start: Setting, keys: tuple[str, ...], needed: Bytes, room: float) -> Iterator[Setting]:
    """The setting that fits by changing exactly these, if there is one."""
    setting = start
    if HALF in keys:
        setting = _train(setting, precision="bf16-true")
    for devices in _counts(start.devices) if SHARD in keys else [start.devices]:
        tried = replace(setting, devices=devices)
        if SHARD in keys:
            tried = _train(tried, strategy="fsdp")
        tried = _reduced(tried, [key for key in (BATCH, MICRO) if key in keys], needed, room)
        changes = _written(start, tried)
        if needed(tried.config, devices) <= room and len(changes) == len(keys):
            yield replace(tried, changes=changes)
            return


def _counts(devices: int) -> Iterator[int]:
    """The number of devices there is, if there are several, and twice as many again and again."""
    count = max(2, devices)
    while count <= MOST_DEVICES:
        yield count
        count *= 2


def _reduced(setting: Setting, keys: list[str], needed: Bytes, room: float) -> Setting:
    """Some numbers halved, each time the one that helps most, until it fits or nothing helps."""
    while (now := needed(setting.config, setting.devices)) > room:
        smaller = [s for s in (_halved(setting, key) for key in keys) if s is not None]
        best = min(smaller, key=lambda s: needed(s.config, s.devices), default=None)
        if best is None or needed(best.config, best.devices) >= now:
            return setting
        setting = best
    return setting


def _halved(setting: Setting, key: str) -> Setting | None:
    """The setting with one number halved; None where it is as small as it gets."""
    config = setting.config
    if key == BATCH:
        rows = int(config.engine["max_batch"])
        engine = {**config.engine, "max_batch": rows // 2}
        return replace(setting, config=config.model_copy(update={"engine": engine})) if rows > 1 else None
    tokens = config.learn.micro_batch_tokens // 2
    if tokens < SMALLEST_MICRO_BATCH:
        return None
    learn = config.learn.model_copy(update={"micro_batch_tokens": tokens})
    return replace(setting, config=config.model_copy(update={"learn": learn}))


def _train(setting: Setting, **values: str) -> Setting:
    train = setting.config.train.model_copy(update=values)
    return replace(setting, config=setting.config.model_copy(update={"train": train}))


def _written(start: Setting, end: Setting) -> tuple[str, ...]:
    """The changes between two settings."""
    old, new = start.config, end.config
    pairs = (
        (BATCH, old.engine.get("max_batch"), new.engine.get("max_batch")),
        (MICRO, old.learn.micro_batch_tokens, new.learn.micro_batch_tokens),
        (HALF, old.train.precision, new.train.precision),
        (SHARD, (old.train.strategy, start.devices), (new.train.strategy, end.devices)),
    )
    changed = [(key, value) for key, before, value in pairs if before != value]
    return tuple(
        f"{key}={end.config.train.strategy} on {end.devices} devices" if key == SHARD else f"{key}={value}"
        for key, value in changed
    )
