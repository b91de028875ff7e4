"""The host's memory of a node while the processes of a training load their models onto devices.

Every process reads the whole of every model, on the CPU. There it stays until the strategy divides it, where
`train.strategy=fsdp` does. Any other model goes to the device before the next one is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlanything.config import Config
from rlanything.engines.placement import SHARDED, Role, weight_bytes
from rlanything.planning.costs.hours import learning
from rlanything.planning.costs.memory import Part
from rlanything.planning.costs.sizes import Size
from rlanything.planning.samplers import loaded


@dataclass(frozen=True)
class Loading:
    """Bytes of the host's memory at the moment when most models are in it."""

    parts: tuple[Part, ...]
    """What one process holds then: what waits to be divided, and the model that is on its way to the device."""
    processes: int | None
    """Processes of a node; None where the configuration does not say how many."""

    @property
    def process(self) -> float:
        """The bytes of one process."""
        return sum(part.bytes for part in self.parts)

    @property
    def node(self) -> float | None:
        """The bytes of all processes of a node; None where their number is not known."""
        return None if self.processes is None else self.process * self.processes


def loading(config: Config, arm_name: str, sizes: Mapping[str, Size], devices: int) -> Loading:
    """What loading takes in a training on `devices` devices, in the order in which `runs.parts` loads."""
    learns = [name for name in learning(config, arm_name) if name not in config.learn.lora]
    divided = config.train.strategy == SHARDED
    waiting: list[Part] = []
    moments: list[tuple[Part, ...]] = []
    for name in loaded(config, config.arm(arm_name)):
        if divided and name in learns:
            waiting.append(_whole(config, name, sizes, Role.TRAINED, "until it is divided"))
            moving = _whole(config, name, sizes, Role.FROZEN, "the copy that samples, on its way")
        else:
            role = Role.TRAINED if name in learns else Role.FROZEN
            moving = _whole(config, name, sizes, role, "on its way to the device")
        moments.append((*waiting, moving))
    if config.learn.kl_reference == "base":
        references = [_whole(config, name, sizes, Role.FROZEN, "reference, on its way") for name in learns]
        moments += [(*waiting, moving) for moving in references]
    most = max(moments, key=lambda parts: sum(part.bytes for part in parts))
    processes = config.train.devices if devices == config.train.processes else None
    return Loading(tuple(part for part in most if part.bytes), processes)


def _whole(config: Config, name: str, sizes: Mapping[str, Size], role: Role, what: str) -> Part:
    """All weights of a model, in the number format of its role."""
    width = weight_bytes(config.precision(name), role)
    return Part(f"weights, {what}", name, sizes[name].parameters * width)
