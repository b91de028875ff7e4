"""Stage `evaluate`: an arm's final checkpoints on the frozen panels, raw results per task, every seed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlanything.config import BASE, Checkpoint, Config
from rlanything.core.errors import ConfigError
from rlanything.core.seeds import derive_seed
from rlanything.core.splits import POLICY_PANELS
from rlanything.files import locks
from rlanything.files.atomic import clear_leftovers
from rlanything.files.reader import read_objects
from rlanything.files.records import read_lines, write_json
from rlanything.runs.layout import Layout, read_tasks
from rlanything.runs.workers import run_all


def evaluate_arm(config: Config, root: Path, arm: str) -> None:
    """Write evaluation/<arm>.json (format: docs/results.md). `arm` may be `base`. Raises `ConfigError`."""
    if arm != BASE:
        config.arm(arm)
    place = Layout(root).evaluation(arm)
    apart = (*locks.MAKERS, f"train --arm {arm}")
    with locks.stage(root, f"evaluate --arm {arm}", place.parent, apart=apart):
        Layout(root).check_bootstrap()
        clear_leftovers(place)
        results = _measure(config, root, arm, range(config.train.seeds))
        write_json(place, {"arm": arm, "seeds": results})
    print(f"evaluate: {arm}: {len(results)} seeds")


def _measure(config: Config, root: Path, arm: str, seeds: Sequence[int]) -> dict[str, Any]:
    """Every seed, `train.workers` at a time; here when one process is enough."""
    data = config.model_dump(by_alias=True)
    workers = min(config.train.workers, len(seeds))
    if workers == 1:
        return {str(seed): evaluate_seed(data, root, arm, seed) for seed in seeds}
    results = run_all(evaluate_seed, [(data, root, arm, seed) for seed in seeds], workers)
    return {str(seed): result for seed, result in zip(seeds, results, strict=True)}


def evaluate_seed(data: dict[str, object], root: Path, arm: str, seed: int) -> dict[str, Any]:
    """Raw panel results of one seed; base and arms meet the same draws for the same seed."""
    from rlanything.config import parse
    from rlanything.engines.placement import Role
    from rlanything.loop.panel import measure_policy
    from rlanything.loop.rollout import RolloutWorker
    from rlanything.rewards.kind import kind_of
    from rlanything.runs import build

    build.one_thread()
    config = parse(data)
    layout = Layout(root)
    prompts = build.prompts(config, root)
    policy_at, reward_at = _checkpoints(config, layout, arm, seed)
    policy = build.chat_model(config, *build.load(config, policy_at, root, Role.FROZEN))
    family = build.family(config)
    rollout_worker = RolloutWorker(family, policy, prompts, config.rollout)
    run_seed = derive_seed(config.seed, "evaluate", seed)
    evaluate = config.evaluate
    settings = (run_seed, evaluate.repeats, evaluate.temperature, evaluate.max_steps)
    result: dict[str, Any] = {
        split: measure_policy(rollout_worker, read_tasks(layout.tasks(split)), *settings)
        for split in POLICY_PANELS
    }
    reward = build.chat_model(config, *build.load(config, reward_at, root, Role.FROZEN))
    asking = config.model_copy(update={"judge": config.judge.model_copy(update={"m": evaluate.votes})})
    evaluation = kind_of(config).evaluation(asking, family, reward, prompts)
    result |= evaluation.results(list(read_lines(layout.reward_panel, "rlanything bootstrap")), run_seed)
    result["accepted_tasks"] = _accepted(layout, arm, seed)
    return result


def _checkpoints(config: Config, layout: Layout, arm: str, seed: int) -> tuple[Checkpoint, Checkpoint]:
    """Policy and reward model to measure; an arm that trains no reward model has the bootstrap's."""
    policy = policy_of(config, layout, arm, seed)
    if arm == BASE or not config.arms[arm].train_reward:
        return policy, config.model.reward
    folder = layout.run(arm, seed) / "checkpoints" / "reward"
    return policy, Checkpoint(path=str(folder.relative_to(layout.root)))


def policy_of(config: Config, layout: Layout, arm: str, seed: int) -> Checkpoint:
    """The policy of a seed of an arm, or the one that it began with for `base`. Raises `ConfigError`."""
    if arm == BASE:
        return config.model.policy
    config.arm(arm)
    folder = layout.run(arm, seed) / "checkpoints" / "policy"
    if not folder.is_dir():
        raise ConfigError(f"{folder.parent}: no such folder; train first with `rlanything train --arm {arm}`")
    return Checkpoint(path=str(folder.relative_to(layout.root)))


def _accepted(layout: Layout, arm: str, seed: int) -> int:
    """Tasks accepted by the end of the run."""
    if arm == BASE:
        return 0
    rows = list(read_objects(layout.run(arm, seed) / "metrics.jsonl"))
    return int(rows[-1]["accepted_total"])
