"""The estimate of one arm: sizes, work, memory and time on named devices, and what would fit where it does not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rlanything.config import Config
from rlanything.planning.costs import devices as known
from rlanything.planning.costs.assumptions import Assumptions
from rlanything.planning.costs.hours import Hours, hours
from rlanything.planning.costs.memory import Memory, memory
from rlanything.planning.costs.remedies import Setting, nearest
from rlanything.planning.costs.sizes import Size, embedded_size, read_size
from rlanything.planning.costs.workload import Workload, workload

USABLE = 0.9
"""Share of a device's memory that tensors can have; the rest is the driver's and lost between them."""


@dataclass(frozen=True)
class Estimate:
    """What one arm needs and takes."""

    arm: str
    device: known.Device
    devices: int
    work: Workload
    memory: Memory
    hours: Hours
    nearest: tuple[Setting, float] | None
    """Where it does not fit: the setting with the fewest changes that does, and its bytes."""

    @property
    def room(self) -> float:
        """Bytes that tensors can have on a device."""
        return self.device.memory * USABLE

    @property
    def fits(self) -> bool:
        """Whether the fullest device has room for all of it."""
        return self.memory.peak <= self.room


def model_sizes(config: Config, root: Path) -> dict[str, Size]:
    """The sizes of the three models, none of them loaded. Raises `ConfigError`."""
    model = config.model
    sources = {"policy": model.policy, "reward": model.reward, "adapter": model.adapter}
    if model.embedded is not None:
        return {name: embedded_size(model.embedded, of.path) for name, of in sources.items()}
    return {name: read_size(of, f"model.{name}", root) for name, of in sources.items()}


def estimate(
    config: Config, arm: str, sizes: dict[str, Size], device: known.Device, devices: int, given: Assumptions
) -> Estimate:
    """The estimate of `arm` on `devices` devices. Raises `ConfigError` for an unknown arm."""
    positions = {name: size.positions for name, size in sizes.items()}
    work = workload(config, arm, positions, given)

    def needed(changed: Config, count: int) -> float:
        return memory(changed, arm, sizes, workload(changed, arm, positions, given), count).peak

    found = memory(config, arm, sizes, work, devices)
    room = device.memory * USABLE
    better = None if found.peak <= room else nearest(config, devices, needed, room)
    return Estimate(
        arm, device, devices, work, found, hours(config, arm, sizes, work, device, devices), better
    )
