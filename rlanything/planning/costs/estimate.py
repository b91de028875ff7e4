"""The estimate of one arm: work, memory and time on given devices, and a setting that fits if this one does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rlanything.config import Checkpoint, Config
from rlanything.planning.costs import devices as known
from rlanything.planning.costs.assumptions import Assumptions
from rlanything.planning.costs.cache import Held, held, least_gib
from rlanything.planning.costs.endpoints import endpoint_of, served_size
from rlanything.planning.costs.hours import (
    Hours,
    hours,
    learning,
    parts_of_stage,
    parts_of_training,
    stage_hours,
    width_of,
)
from rlanything.planning.costs.loading import Loading, loading
from rlanything.planning.costs.memory import Memory, memory
from rlanything.planning.costs.remedies import Setting, nearest, staying
from rlanything.planning.costs.saving import Saving, saving
from rlanything.planning.costs.sizes import Size, embedded_size, read_size
from rlanything.planning.costs.weight_files import WeightFiles, weight_files
from rlanything.planning.costs.work.measuring import (
    ADAPTER,
    JUDGE,
    OTHER_POLICY,
    SOLVER,
    Measuring,
    StageWork,
)
from rlanything.planning.costs.work.workload import Calls, Workload, workload

ROLES = ("policy", "reward", ADAPTER)
"""The models of a training. Other models are used by the stages `label` and `evaluate` only."""
ITERATIONS = "iterations"
"""The name of the training among the stages."""
USABLE = 0.9
"""Share of a device's memory that tensors can use. The driver and fragmentation take the rest."""


@dataclass(frozen=True)
class Stage:
    """The work of a stage and its hours, all seeds together. shared: whether it is done once for all arms."""

    work: StageWork
    shared: bool
    seeds: int
    hours: float

    @property
    def times(self) -> int:
        """How often the work is done, all seeds together."""
        return self.work.times * self.seeds


@dataclass(frozen=True)
class Estimate:
    """The work, memory, loading, checkpoints and time of one arm."""

    arm: str
    device: known.Device
    devices: int
    work: Workload
    memory: Memory
    saving: Saving
    loading: Loading
    hours: Hours
    stages: tuple[Stage, ...]
    """The shared stages before the training, the iterations, and the measurements during and after the training."""
    nearest: tuple[Setting, float] | None
    """If it does not fit: the nearest setting that does (`remedies.nearest`), and its bytes; None if there is none."""
    staying: float = 0.0
    """If no setting fits: the bytes that are always on a device, in every setting that was tried."""
    held: tuple[Held, ...] = ()
    """The calls of which vLLM's cache holds fewer rows at once than could be sampled together."""
    least_gib: float = 0.0
    """The least `engine.cache_gib` with which vLLM starts in every stage; 0 with another engine."""
    weight_files: WeightFiles | None = None
    """What vLLM's servers read weights from; None with another engine."""

    @property
    def all_hours(self) -> float:
        """Hours of all stages."""
        return sum(stage.hours for stage in self.stages)

    @property
    def room(self) -> float:
        """Bytes that tensors can use on a device."""
        return self.device.memory * USABLE

    @property
    def fits(self) -> bool:
        """Whether the peak memory fits on a device."""
        return self.memory.peak <= self.room


def checkpoints(config: Config) -> dict[str, tuple[str, Checkpoint]]:
    """Every model that a stage uses: name -> (key in the configuration, checkpoint)."""
    model, evaluate = config.model, config.evaluate
    found = {
        "policy": ("model.policy", model.policy),
        "reward": ("model.reward", model.reward),
        ADAPTER: ("model.adapter", model.adapter),
    }
    if evaluate.reward_policy is not None:
        found[OTHER_POLICY] = ("evaluate.reward_policy", evaluate.reward_policy)
    if evaluate.solver is not None:
        found[SOLVER] = ("evaluate.solver", evaluate.solver)
    if evaluate.labels == "judge":
        found |= {JUDGE + name: (f"evaluate.judges.{name}", of) for name, of in evaluate.judges.items()}
    return found


def model_sizes(config: Config, root: Path) -> dict[str, Size]:
    """The sizes of the models that a stage uses, by name. No model is loaded. Raises `ConfigError`."""
    sizes: dict[str, Size] = {}
    known: dict[str, Size] = {}
    for name, (key, of) in checkpoints(config).items():
        endpoint = endpoint_of(config, name)
        if endpoint is not None:
            sizes[name] = served_size(endpoint)
            continue
        made = Path(of.path).parts[:1] == ("runs",) and Path(of.path).name  # trained by an arm, perhaps later
        if made in ("policy", "reward") and made in sizes:
            sizes[name] = sizes[made]
        elif of.path in known:
            sizes[name] = known[of.path]
        elif name in ROLES and config.model.embedded is not None:
            sizes[name] = embedded_size(config.model.embedded, of.path)
        else:
            sizes[name] = read_size(of, key, root)
        known.setdefault(of.path, sizes[name])
    return sizes


def estimate(
    config: Config, arm: str, sizes: dict[str, Size], device: known.Device, devices: int, given: Assumptions
) -> Estimate:
    """The estimate of `arm` on `devices` devices. Raises `ConfigError` for an unknown arm."""
    positions = _contexts(config, sizes)
    work = workload(config, arm, positions, given)

    def of(changed: Config, count: int) -> Memory:
        return memory(changed, arm, sizes, workload(changed, arm, positions, given), count)

    found = memory(config, arm, sizes, work, devices)
    room = device.memory * USABLE
    fits = found.peak <= room
    better = None if fits else nearest(config, devices, lambda *setting: of(*setting).peak, room)
    kept = 0.0 if fits or better else staying(config, devices, lambda *setting: of(*setting).always)
    spent = hours(config, arm, sizes, work, device, devices)
    training = Stage(_iterations(config, work), False, config.train.seeds, spent.hours)
    before, after = _stages(config, arm, sizes, device, devices, given)
    stages = (*before, training, *after)
    saved, read = saving(config, arm, sizes), loading(config, arm, sizes, devices)
    cached, least = _held(config, arm, sizes, stages, devices), _least(config, arm, sizes, stages)
    files = weight_files(config, arm, sizes, devices)
    return Estimate(
        arm, device, devices, work, found, saved, read, spent, stages, better, kept, cached, least, files
    )


def _held(
    config: Config, arm: str, sizes: dict[str, Size], stages: Iterable[Stage], devices: int
) -> tuple[Held, ...]:
    """What vLLM's cache holds of the calls of all stages, where it does not hold all of their rows."""
    found = (
        held(config, stage.work.name, calls, sizes[calls.model], width, part, devices)
        for stage, calls, width, part in _cached(config, arm, sizes, stages)
    )
    return tuple(each for each in found if each is not None)


def _least(config: Config, arm: str, sizes: dict[str, Size], stages: Iterable[Stage]) -> float:
    """The least `engine.cache_gib` of all stages."""
    cached = _cached(config, arm, sizes, stages)
    return max(
        (least_gib(config, sizes[calls.model], width, part) for _, calls, width, part in cached), default=0.0
    )


def _cached(
    config: Config, arm: str, sizes: dict[str, Size], stages: Iterable[Stage]
) -> Iterator[tuple[Stage, Calls, int, float]]:
    """The calls of all stages, with the bytes of a weight that samples and the part of the cache of their model."""
    learns = learning(config, arm)
    training = parts_of_training(config, arm, sizes)
    for stage in stages:
        cache = parts_of_stage(config, stage.work, training, sizes)
        for calls in stage.work.calls:
            if calls.model in cache:
                width = width_of(config, calls.model, learns if stage.work.training else ())
                yield stage, calls, width, cache[calls.model]


def _contexts(config: Config, sizes: dict[str, Size]) -> dict[str, int]:
    """The most tokens of a prompt with its reply, of each model."""
    served = config.endpoints.served  # an endpoint's size has its own context
    return {
        name: size.positions if name in served else config.context(size.positions)
        for name, size in sizes.items()
    }


def _iterations(config: Config, work: Workload) -> StageWork:
    return StageWork(ITERATIONS, work.calls, config.train.iterations, True, training=True)


def _stages(
    config: Config, arm: str, sizes: dict[str, Size], device: known.Device, devices: int, given: Assumptions
) -> tuple[list[Stage], list[Stage]]:
    """The stages that all arms share, and the measurements of this arm."""
    positions = _contexts(config, sizes)
    measuring, learns = Measuring(config, positions, given), learning(config, arm)
    training = parts_of_training(config, arm, sizes)

    def stage(work: StageWork, shared: bool) -> Stage:
        seeds = config.train.seeds if work.every_seed else 1
        cache = parts_of_stage(config, work, training, sizes)
        return Stage(work, shared, seeds, stage_hours(config, work, learns, sizes, device, devices, cache))

    return [stage(w, True) for w in measuring.shared()], [stage(w, False) for w in measuring.of_arm(arm)]
