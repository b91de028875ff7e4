"""The control `base_cooled`: the untrained policy at its best sampling temperature.

Training makes a policy less random, and so does a lower temperature. The control shows how much of a gain by training a
lower temperature alone would give. The best temperature is chosen on tasks that are used for nothing else, and not on
the panels. On the panels the control samples with the same seeds as the arms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isnan
from pathlib import Path
from typing import Any

from rlanything.config import Checkpoint, Config, CoolingConfig, parse
from rlanything.core.errors import ConfigError
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Task
from rlanything.runs import build, families, launch
from rlanything.runs.layout import Layout
from rlanything.runs.workers import side_by_side
from rlanything.stages.crashes import all_crashed, say


def measure_cooled(
    config: Config, root: Path, policy: Checkpoint, taught: Config | None = None
) -> dict[str, Any]:
    """The results of a cooled policy, as evaluation/<name>.json holds them.

    `temperature`: the best one; of equally good ones the highest. `shares`: temperature -> success on the tasks for
    choosing it. `seeds`: seed -> results on the panels. taught: the configuration by which `policy` was supervised;
    None: `config`.

    Raises `ConfigError` when `evaluate.cooling` is null or there are too few tasks, `MachineError` when every episode
    crashed.
    """
    cooling = config.evaluate.cooling
    if cooling is None:
        raise ConfigError(
            "evaluate.cooling = null: the untrained policy is not measured at other temperatures; give temperatures, "
            "tasks and repeats, as experiments/scale/default.yaml does"
        )
    tasks = fresh_tasks(config, root, cooling.tasks, taught)
    shares = _shares(config, root, policy, cooling, tasks)
    best = max(shares, key=lambda t: (shares[t], t))
    data = config.model_dump(by_alias=True)
    calls = [(data, root, policy.model_dump(), best, seed) for seed in range(config.train.seeds)]
    results = side_by_side(measure_at, calls, launch.workers(config.train))
    return {
        "temperature": best,
        "shares": {str(t): share for t, share in shares.items()},
        "seeds": {str(seed): result for seed, result in enumerate(results)},
    }


def _shares(
    config: Config, root: Path, policy: Checkpoint, cooling: CoolingConfig, fresh: Sequence[Task]
) -> dict[float, float]:
    """Temperature -> success rate on the fresh tasks. A temperature at which every episode crashed is left out."""
    data = config.model_dump(by_alias=True)
    tasks = [task.to_json() for task in fresh]
    calls = [(data, root, policy.model_dump(), t, tasks, cooling.repeats) for t in cooling.temperatures]
    found = side_by_side(try_temperature, calls, launch.workers(config.train))
    shares = {t: share for t, share in zip(cooling.temperatures, found, strict=True) if not isnan(share)}
    if not shares:
        raise all_crashed(f"evaluate.cooling: the episodes on {len(tasks)} tasks, at all temperatures")
    return shares


def fresh_tasks(config: Config, root: Path, count: int, taught: Config | None = None) -> list[Task]:
    """Tasks of the training split that nothing else uses, not even the training of embedded base models.

    taught: the configuration of a policy that learned from other tasks than the base models; these are left out too.
    Raises `ConfigError` when there are fewer than `count`.
    """
    family = families.family(config)
    seen = families.practice_tasks(config, root, family) if config.model.embedded is not None else []
    seed = derive_seed(config.seed, "cooling")
    found = families.further_tasks(config, root, family, count, seed, seen)
    others = [] if taught is None else families.practice_tasks(taught, root, families.family(taught))
    if {task.task_id for task in others} & {task.task_id for task in found}:
        # Drawn anew only then: which tasks are drawn depends on how many are left out.
        found = families.further_tasks(config, root, family, count, seed, [*seen, *others])
    if len(found) < count:
        raise ConfigError(
            f"evaluate.cooling.tasks = {count}: the environment has only {len(found)} tasks of the training split that "
            "nothing else uses"
        )
    return found


def try_temperature(
    data: dict[str, Any],
    root: Path,
    policy: dict[str, Any],
    temperature: float,
    tasks: Sequence[Any],
    repeats: int,
) -> float:
    """Success rate of a policy at one temperature, as the mean over tasks; nan when every episode crashed."""
    from rlanything.loop.panel import play_panel, success_rate, successes

    config, fresh = parse(data), [Task.from_json(task) for task in tasks]
    settings = (derive_seed(config.seed, "cooling", "try"), repeats, temperature, config.evaluate.max_steps)
    with _worker(config, root, policy) as worker:
        played = play_panel(worker, fresh, *settings)
    say(f"evaluate.cooling: temperature {temperature:g}", played)
    return success_rate(successes(fresh, played))


def measure_at(
    data: dict[str, Any], root: Path, policy: dict[str, Any], temperature: float, seed: int
) -> dict[str, Any]:
    """Results of a policy on the panels at a temperature, with the same sampling seeds as the arms."""
    from rlanything.stages.policy_panels import policy_results

    config = parse(data)
    cooled = config.evaluate.model_copy(update={"temperature": temperature})
    config = config.model_copy(update={"evaluate": cooled})
    run_seed = derive_seed(config.seed, "evaluate", seed)
    with _worker(config, root, policy) as worker:
        return policy_results(config, Layout(root), worker, run_seed)


@contextmanager
def _worker(config: Config, root: Path, policy: dict[str, Any]) -> Iterator[Any]:
    """A rollout worker of a policy, whose engine is closed at the end."""
    from rlanything.runs.executors.opened import opened

    build.one_thread()
    source = Checkpoint.model_validate(policy)
    family, prompts = build.family(config), build.prompts(config, root)
    with opened(config), build.player(config, source, root, family, prompts) as worker:
        yield worker
