"""Where a model lies and in which number format: the one place that decides it, for every stage.

It follows from the section `train` of the configuration and from what the model is for. Whoever gives a model its
inputs asks the model for its device.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum

import torch

from rlanything.config import TrainConfig
from rlanything.core.errors import ConfigError

SHARDING = ("fsdp", "deepspeed")
"""Beginnings of the names of Lightning's strategies that divide a model among the devices themselves."""


class Role(Enum):
    """What a model is for in a run."""

    TRAINED = "trained"
    """An optimizer changes it."""
    FROZEN = "frozen"
    """It is only read: the adapter, a reference, a reward model that does not train, whatever a panel measures."""


@dataclass(frozen=True)
class Placement:
    """Where a model lies, and the format of its weights."""

    device: torch.device
    dtype: torch.dtype


CPU = Placement(torch.device("cpu"), torch.float32)
"""Where embedded models are made: the same bytes on every machine."""


def placement(train: TrainConfig, role: Role) -> Placement:
    """The place of a model. Raises `ConfigError` for an accelerator that is not there.

    A strategy that shards takes the models that train from the memory of the host, so that no device ever holds a
    whole one.
    """
    place = device(train)
    if role is Role.TRAINED and train.strategy.startswith(SHARDING):
        place = CPU.device
    return Placement(place, dtype(train.precision, role))


def dtype(precision: str, role: Role) -> torch.dtype:
    """The format of a model's weights under Lightning's `precision`.

    With `bf16-mixed` the weights that an optimizer changes stay in float32, where its small steps are not lost.
    """
    half = {"32-true": (), "bf16-mixed": (Role.FROZEN,), "bf16-true": tuple(Role)}[precision]
    return torch.bfloat16 if role in half else torch.float32


def device(train: TrainConfig) -> torch.device:
    """The device of this process: under torchrun the one with its local rank. Raises `ConfigError`."""
    kind = kind_of_device(train.accelerator)
    count = _count(kind)
    if kind != "cpu" and count < train.devices:
        raise ConfigError(f"train.devices = {train.devices}: this machine has {count} of kind {kind!r}")
    return (
        torch.device(kind, int(os.environ.get("LOCAL_RANK", "0"))) if kind == "cuda" else torch.device(kind)
    )


def kind_of_device(accelerator: str) -> str:
    """`cpu`, `cuda` or `mps`; `auto` takes what Lightning's trainer would. Raises `ConfigError`."""
    present = [kind for kind in ("mps", "cuda", "cpu") if _count(kind)]
    if accelerator == "auto":
        return present[0]
    if accelerator not in present:
        raise ConfigError(
            f"train.accelerator = {accelerator!r}: PyTorch {torch.__version__} finds no such device here; must be auto "
            f"or {' or '.join(present)}"
        )
    return accelerator


def _count(kind: str) -> int:
    """How many devices of a kind this machine has. As many processes as are wanted share its CPU."""
    if kind == "cuda":
        return torch.cuda.device_count()
    return int(torch.backends.mps.is_available()) if kind == "mps" else 1
