"""What would fit: the fewest changes of the configuration, or more devices, with which a training fits a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

from rlanything.config import Config

SMALLEST_MICRO_BATCH = 512
MOST_DEVICES = 1024
MOST_CHANGES = 4


@dataclass(frozen=True)
class Setting:
    """A configuration and a number of devices, with the changes that lead to them."""

    config: Config
    devices: int
    changes: tuple[str, ...] = ()


Bytes = Callable[[Config, int], float]
"""(configuration, devices) -> bytes on the fullest device."""
Change = Callable[[Setting, Bytes, float], Setting]
"""A setting with one thing changed as far as it has to be, or as far as it goes."""


def nearest(config: Config, devices: int, needed: Bytes, room: float) -> tuple[Setting, float] | None:
    """The setting with the fewest changes that fits into `room` bytes, and its bytes; None where none does.

    Of several the one that needs the fewest devices, then the one that leaves most room.
    """
    start = Setting(config, devices)
    for count in range(1, MOST_CHANGES + 1):
        found = [(s, needed(s.config, s.devices)) for s in _changed(start, count, needed, room)]
        fitting = [(s, bytes_) for s, bytes_ in found if bytes_ <= room]
        if fitting:
            return min(fitting, key=lambda pair: (pair[0].devices, pair[1]))
    return None


def _changed(start: Setting, count: int, needed: Bytes, room: float) -> Iterator[Setting]:
    for changes in combinations((_batch, _micro_batch, _half, _shard), count):
        setting = start
        for change in changes:
            setting = change(setting, needed, room)
        if len(setting.changes) == count:
            yield setting


def _halved(
    setting: Setting,
    key: str,
    value: int,
    least: int,
    put: Callable[[int], Config],
    needed: Bytes,
    room: float,
) -> Setting:
    """A whole number halved until the setting fits or the least is reached."""
    new = value
    while new > least and needed(put(new), setting.devices) > room:
        new = max(least, new // 2)
    if new == value:
        return setting
    return Setting(put(new), setting.devices, (*setting.changes, f"{key}={new}"))


def _micro_batch(setting: Setting, needed: Bytes, room: float) -> Setting:
    config = setting.config

    def put(tokens: int) -> Config:
        return config.model_copy(
            update={"learn": config.learn.model_copy(update={"micro_batch_tokens": tokens})}
        )

    key, now = "learn.micro_batch_tokens", config.learn.micro_batch_tokens
    return _halved(setting, key, now, SMALLEST_MICRO_BATCH, put, needed, room)


def _batch(setting: Setting, needed: Bytes, room: float) -> Setting:
    config = setting.config

    def put(rows: int) -> Config:
        return config.model_copy(update={"engine": {**config.engine, "max_batch": rows}})

    return _halved(setting, "engine.max_batch", int(config.engine["max_batch"]), 1, put, needed, room)


def _half(setting: Setting, needed: Bytes, room: float) -> Setting:
    if setting.config.train.precision == "bf16-true":
        return setting
    return _train(setting, setting.devices, "train.precision=bf16-true", precision="bf16-true")


def _shard(setting: Setting, needed: Bytes, room: float) -> Setting:
    """Divide what trains, among as many devices as it takes."""
    devices = setting.devices if setting.devices > 1 else 2
    while True:
        sharded = _train(setting, devices, f"train.strategy=fsdp on {devices} devices", strategy="fsdp")
        if needed(sharded.config, devices) <= room or devices >= MOST_DEVICES:
            return sharded
        devices *= 2


def _train(setting: Setting, devices: int, change: str, **values: str) -> Setting:
    config = setting.config
    train = config.train.model_copy(update=values)
    return Setting(config.model_copy(update={"train": train}), devices, (*setting.changes, change))
