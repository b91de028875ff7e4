"""The device of a model, the number format of its weights, and what is said where memory is short, for every stage.

The device follows from the section `train` of the configuration, the format from the model's precision, and both from
its role. Code that feeds a model asks the model for its device. torch is imported where its objects are needed: a plan
asks only how many bytes a weight has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from rlanything.config import Precision, TrainConfig
from rlanything.core.errors import ConfigError, MachineError

if TYPE_CHECKING:
    import torch

SHARDED = "fsdp"
"""The `train.strategy` that divides a model that trains over the devices (`learn.sharding`)."""
_CPU_FULL = "DefaultCPUAllocator: "
"""In the words of the error where the memory of the CPU is short. It has no class of its own, as that of a GPU has."""


class Role(Enum):
    """What a model is for in a run."""

    TRAINED = "trained"
    """An optimizer changes it."""
    FROZEN = "frozen"
    """It is only read: the adapter, a reference, a reward model that does not train, whatever a panel measures."""


@dataclass(frozen=True)
class Placement:
    """The device of a model, and the number format of its weights."""

    device: torch.device
    dtype: torch.dtype


def placement(train: TrainConfig, role: Role, precision: Precision) -> Placement:
    """The device and format of a model with this precision. Raises `ConfigError` as `device` does.

    A model that is divided over the devices is loaded on the CPU, so that no device ever holds all of it.
    """
    import torch

    place = device(train)
    if role is Role.TRAINED and train.strategy == SHARDED:
        place = torch.device("cpu")
    return Placement(place, dtype(precision, role))


@contextmanager
def in_room(what: str) -> Iterator[None]:
    """Turn what PyTorch raises where memory is short into `MachineError`. what: the beginning of its message."""
    import torch

    try:
        yield
    except RuntimeError as error:
        if not (isinstance(error, torch.OutOfMemoryError) or _CPU_FULL in str(error)):
            raise
        raise MachineError(f"{what}: {error}") from None


def exact_convolutions() -> None:
    """From now on, convolutions in this process multiply float32 numbers with all of their bits on a GPU.

    PyTorch's default there is TF32, with 10 bits, for what cuDNN computes and not for matrix products. A vision tower
    begins with a convolution.
    """
    import torch

    torch.backends.cudnn.allow_tf32 = False


def dtype(precision: Precision, role: Role) -> torch.dtype:
    """The format of the weights of a model with this precision.

    With `bf16-mixed`, weights that an optimizer changes stay in float32: bfloat16 would round small updates away.
    """
    import torch

    return torch.bfloat16 if _halved(precision, role) else torch.float32


def weight_bytes(precision: Precision, role: Role) -> int:
    """Bytes of a weight in that format."""
    return 2 if _halved(precision, role) else 4


def _halved(precision: Precision, role: Role) -> bool:
    return role in {"32-true": (), "bf16-mixed": (Role.FROZEN,), "bf16-true": tuple(Role)}[precision]


def device(train: TrainConfig) -> torch.device:
    """The device of this process; on CUDA, its index is the local rank under torchrun.

    Raises `ConfigError` for an accelerator that is absent, and where there are fewer devices than `train.devices`, or
    than processes that torchrun started on this machine.
    """
    import torch

    kind = kind_of_device(train.accelerator)
    count, rank = _count(kind), int(os.environ.get("LOCAL_RANK", "0"))
    if kind != "cpu" and count < train.devices:
        raise ConfigError(f"train.devices = {train.devices}: this machine has {count} of kind {kind!r}")
    if kind != "cpu" and rank >= count:
        raise ConfigError(
            f"torchrun started at least {rank + 1} processes here: this machine has {count} of kind {kind!r}, one for "
            "each"
        )
    return torch.device(kind, rank) if kind == "cuda" else torch.device(kind)


def kind_of_device(accelerator: str) -> str:
    """`cpu`, `cuda` or `mps`; `auto` chooses as Lightning's trainer does. Raises `ConfigError` for an absent device."""
    present = [kind for kind in ("mps", "cuda", "cpu") if _count(kind)]
    if accelerator == "auto":
        return present[0]
    if accelerator not in present:
        import torch

        raise ConfigError(
            f"train.accelerator = {accelerator!r}: PyTorch {torch.__version__} finds no such device here; must be auto "
            f"or {' or '.join(present)}"
        )
    return accelerator


def _count(kind: str) -> int:
    """How many devices of a kind this machine has. 1 for a CPU, which any number of processes can share."""
    if kind == "cpu":
        return 1
    import torch

    if kind == "cuda":
        return torch.cuda.device_count()
    return int(torch.backends.mps.is_available())
