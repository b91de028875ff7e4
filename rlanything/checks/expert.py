"""The control `expert`: the environment's own demonstrations on the panels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlanything.config import Config, parse
from rlanything.core.seeds import derive_seed
from rlanything.runs import build
from rlanything.runs.layout import Layout, read_tasks
from rlanything.runs.workers import side_by_side


def measure_expert(config: Config, root: Path) -> dict[str, Any]:
    """The results of every seed, in the form of evaluation/<arm>.json: demonstrations within `evaluate.max_steps`."""
    data = config.model_dump(by_alias=True)
    calls = [(data, root, seed) for seed in range(config.train.seeds)]
    results = side_by_side(measure_seed, calls, config.train.workers)
    return {"seeds": {str(seed): result for seed, result in enumerate(results)}}


def measure_seed(data: dict[str, Any], root: Path, seed: int) -> dict[str, Any]:
    """Panel -> task id -> 1 or 0 for each demonstration; one that crashes is left out."""
    from rlanything.stages.solving import demonstrated

    config = parse(data)
    family, evaluate = build.family(config), config.evaluate
    run_seed = derive_seed(config.seed, "check", "expert", seed)
    found: dict[str, Any] = {}
    for panel in config.tasks.policy_panels:
        found[panel] = {}
        for task in read_tasks(Layout(root).tasks(panel)):
            seeds = [derive_seed(run_seed, "try", task.task_id, k) for k in range(evaluate.repeats)]
            tries = [demonstrated(family, task, s, config, evaluate.max_steps) for s in seeds]
            found[panel][task.task_id] = [int(done) for done in tries if done is not None]
    return found
