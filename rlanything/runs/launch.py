"""The processes that torchrun started for a command: which one this is, and how they begin a measurement together.

A training divides its work as `train.devices`, `train.nodes` and `train.strategy` say, and Lightning connects its
processes. A measurement has no such settings: any number of processes divides what asks models (`loop.share`), and the
results do not depend on how many they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar, cast

from rlanything.config import TrainConfig
from rlanything.core.errors import ConfigError
from rlanything.loop.share import connected, from_first, together

Made = TypeVar("Made")


def launched() -> bool:
    """Whether torchrun started this process."""
    return "RANK" in os.environ


def first_process() -> bool:
    """Whether this process writes files: it is the only one, or rank 0 under torchrun."""
    return int(os.environ.get("RANK", "0")) == 0


@contextmanager
def in_first(make: Callable[[], AbstractContextManager[Made]]) -> Iterator[Made]:
    """The context that `make` returns. The process that writes files enters it, and all of them get what it gives.

    The others begin the block when it is entered. Every process of a measurement must come here.
    """
    own: AbstractContextManager[Made | None] = make() if first_process() else nullcontext()
    with own as made:
        yield cast(Made, from_first(made))


def workers(train: TrainConfig) -> int:
    """How many processes of its own a command may have at once. One that torchrun started has none."""
    return 1 if launched() else train.workers


@contextmanager
def measuring(train: TrainConfig) -> Iterator[None]:
    """In the block, the processes that torchrun started divide what asks models. Without torchrun nothing is divided.

    Raises `MachineError` where another process has ended, or is later than `train.timeout_s`.
    """
    if not launched():
        yield
        return
    with connected(train.timeout_s), together():
        yield


def alone(command: str, why: str) -> None:
    """Raise `ConfigError` where torchrun started several processes of a command that is for one."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count > 1:
        raise ConfigError(
            f"torchrun started {count} processes of `{command}`, but {why}: start it without torchrun"
        )
