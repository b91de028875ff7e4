"""The disk that the files take from which vLLM's servers read weights (`engines.vllm.served.store`).

Each process that trains writes one file for each model that it asks, also for one that never changes. The last file
goes before the next one is written, so there is one at a time. Its layout follows from the model: all tensors of the
state, a tied head under both of its names, all in one number format. The names and shapes before them are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlanything.config import Config
from rlanything.planning.costs.cache import copied
from rlanything.planning.costs.endpoints import endpoint_of
from rlanything.planning.costs.hours import learning, width_of
from rlanything.planning.costs.low_rank import FULL, lora_weights
from rlanything.planning.costs.memory import Part
from rlanything.planning.costs.sizes import Size
from rlanything.planning.samplers import SERVERS, loaded, lora_apart
from rlanything.targets import TARGET


@dataclass(frozen=True)
class WeightFiles:
    """Bytes of the files of a training."""

    parts: tuple[Part, ...]
    """The files of one process."""
    processes: int
    """How many processes have such files at once."""

    @property
    def process(self) -> float:
        """The bytes of one process."""
        return sum(part.bytes for part in self.parts)

    @property
    def most(self) -> float:
        """The bytes of all processes. Those of one node share a disk, and with `engine.folder` all do."""
        return self.processes * self.process


def weight_files(
    config: Config, arm_name: str, sizes: Mapping[str, Size], devices: int
) -> WeightFiles | None:
    """The files of a training on `devices` devices, one process each; None with another engine.

    One device has a process for each seed that trains at once.
    """
    if config.engine[TARGET] != SERVERS:
        return None
    arm, learns = config.arm(arm_name), learning(config, arm_name)
    parts: list[Part] = []
    for name in loaded(config, arm):
        if endpoint_of(config, name) is not None:
            continue
        parts.append(
            Part("weights", name, _numbers(sizes[name]) * copied(config, width_of(config, name, learns)))
        )
        low_rank = config.learn.lora.get(name)
        has_lora = name in learns or (name == "reward" and arm.reward_from is not None)
        if low_rank is not None and has_lora and lora_apart(config, name):
            parts.append(Part("LoRA's weights", name, lora_weights(sizes[name], low_rank) * FULL))
    return WeightFiles(tuple(parts), config.train.seeds_at_once if devices == 1 else devices)


def _numbers(size: Size) -> int:
    """The numbers of a state: its parameters, and those of a tied head once more."""
    return size.parameters + (size.vocab * size.hidden if size.tied else 0)
