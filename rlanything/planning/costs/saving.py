"""What a checkpoint of a run (state.ckpt) takes: disk, and the host's memory of the process that writes it.

It has the weights that train and two moments of AdamW for each, in the number format of the weights. It has no frozen
weights. The rest of it, such as episodes that were sampled ahead, is small and is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlanything.config import Config
from rlanything.engines.placement import SHARDED
from rlanything.planning.costs.hours import learning
from rlanything.planning.costs.low_rank import learned
from rlanything.planning.costs.memory import Part
from rlanything.planning.costs.sizes import Size
from rlanything.runs.folder import KEPT


@dataclass(frozen=True)
class Saving:
    """Bytes of the checkpoints of one seed."""

    parts: tuple[Part, ...]
    """What one file holds."""
    gathered: bool
    """Whether devices have parts of the weights and moments. The first process then gathers them before it writes."""

    @property
    def file(self) -> float:
        """The bytes of one file."""
        return sum(part.bytes for part in self.parts)

    @property
    def host(self) -> float:
        """The host's memory that the first process needs until the file is written; no other process needs any.

        What is not divided is written from where it lies, one tensor at a time, which is not counted.
        """
        return self.file if self.gathered else 0.0

    @property
    def kept(self) -> float:
        """The disk that the live folder takes for checkpoints between two iterations."""
        return KEPT * self.file

    @property
    def most(self) -> float:
        """The disk that it takes while the next checkpoint is written: the oldest one goes after that."""
        return self.kept + self.file


def saving(config: Config, arm: str, sizes: Mapping[str, Size]) -> Saving:
    """The checkpoints of a training of one seed."""
    parts: list[Part] = []
    for name in learning(config, arm):
        count, width = learned(config, name, sizes[name])
        low_rank = " of LoRA" if name in config.learn.lora else ""
        parts.append(Part(f"weights{low_rank}", name, count * width))
        parts.append(Part(f"moments of AdamW{low_rank}", name, 2 * count * width))
    return Saving(tuple(parts), config.train.strategy == SHARDED)
