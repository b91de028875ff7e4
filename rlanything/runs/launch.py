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

from rlanything.config import Config, TrainConfig
from rlanything.core.errors import ConfigError
from rlanything.loop.share import connected, from_first, together
from rlanything.targets import TARGET

Made = TypeVar("Made")
ALONE = ".VllmEngine"
"""The class of the engine that needs the process group of its process."""


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
def measuring(config: Config) -> Iterator[None]:
    """In the block, the processes that torchrun started divide what asks models. Without torchrun nothing is divided.

    Raises `ConfigError` for several processes of an engine that is for one, and `MachineError` where another process
    has ended, or is later than `train.timeout_s`.
    """
    if not launched():
        yield
        return
    _check_engine(config)
    with connected(config.train.timeout_s), together():
        yield


def _check_engine(config: Config) -> None:
    """vLLM in this process would make its groups from all processes that are connected, and wait for the others."""
    count = _started()
    if count > 1 and str(config.engine[TARGET]).endswith(ALONE):
        raise ConfigError(
            f"torchrun started {count} processes: engine=vllm runs in the process that asks, and would take their "
            "process group for its own; allowed: engine=vllm_servers, engine=transformers, or no torchrun"
        )


def alone(command: str, why: str) -> None:
    """Raise `ConfigError` where torchrun started several processes of a command that is for one."""
    count = _started()
    if count > 1:
        raise ConfigError(
            f"torchrun started {count} processes of `{command}`, but {why}: start it without torchrun"
        )


def _started() -> int:
    """How many processes torchrun started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))
