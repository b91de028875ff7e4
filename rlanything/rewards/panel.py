"""The reward panel: a policy tries the panel's tasks. The kind of reward model makes its lines, and reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from rlanything.config import Config
from rlanything.core.errors import ConfigError
from rlanything.core.types import Json, Task, Trajectory
from rlanything.loop.metrics import mean
from rlanything.loop.rollout import Assignment, RolloutWorker, Sampling
from rlanything.rewards.protocols import PanelLines

Line = TypeVar("Line")


def try_tasks(config: Config, tasks: Sequence[Task], worker: RolloutWorker) -> list[Trajectory]:
    """`evaluate.reward_rollouts` of each task, without those that have no step to judge.

    Those that crashed are among them (`Trajectory.counts`); the panel is made of the others. A trajectory's slot is the
    index of its task.
    """
    sampling = Sampling(config.seed, "reward-panel", 0, config.rollout.temperature, config.rollout.max_steps)
    work = [Assignment(k, task, config.evaluate.reward_rollouts) for k, task in enumerate(tasks)]
    return [t for t in worker.roll_out(work, sampling) if t.steps or not t.counts]


def parsed(panel: PanelLines, from_json: Callable[[Mapping[str, Json]], Line]) -> list[Line]:
    """The lines of a panel. Raises `ConfigError` naming the line that cannot be read."""
    found = []
    for number, line in enumerate(panel, 1):
        try:
            found.append(from_json(line))
        except ValueError as error:
            raise ConfigError(
                f"reward panel, line {number}: {error}; make it again with `rlanything bootstrap` (labels of judges: "
                "`rlanything label`)"
            ) from None
    return found


def solved(trajectories: Sequence[Trajectory]) -> float:
    """Share of the trajectories that succeed; nan for none."""
    return mean([float(t.outcome == 1) for t in trajectories])
