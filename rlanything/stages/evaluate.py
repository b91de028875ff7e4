"""Stage `evaluate`: an arm's final checkpoints on the frozen panels, raw results per task, every seed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlanything.config import BASE, Checkpoint, Config
from rlanything.core.errors import ConfigError
from rlanything.core.seeds import derive_seed
from rlanything.core.splits import POLICY_PANELS
from rlanything.files import locks
from rlanything.files.atomic import clear_leftovers
from rlanything.files.reader import read_objects
from rlanything.files.records import write_json
from rlanything.runs.layout import Layout, read_tasks, trained_reward
from rlanything.runs.workers import run_all

if TYPE_CHECKING:
    from rlanything.loop.rollout import RolloutWorker


def evaluate_arm(config: Config, root: Path, arm: str) -> None:
    """Write evaluation/<arm>.json (format: docs/results.md). `arm` may be `base`. Raises `ConfigError`."""
    source = None if arm == BASE else config.judge_of(arm)
    place = Layout(root).evaluation(arm)
    apart = (*locks.MAKERS, "label", *(f"train --arm {name}" for name in {arm, source or arm}))
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
    from rlanything.loop.rollout import RolloutWorker
    from rlanything.rewards.kind import kind_of
    from rlanything.runs import build
    from rlanything.stages.label import final_panels
    from rlanything.stages.solving import accepted_tasks, solve

    build.one_thread()
    config = parse(data)
    layout = Layout(root)
    panels = final_panels(config, layout)  # before minutes of work, because one may be missing
    prompts = build.prompts(config, root)
    policy_at, reward_at = _checkpoints(config, layout, arm, seed)
    policy = build.chat_model(config, *build.load(config, policy_at, root, Role.FROZEN))
    family = build.family(config)
    rollout_worker = RolloutWorker(family, policy, prompts, config.rollout)
    run_seed = derive_seed(config.seed, "evaluate", seed)
    evaluate = config.evaluate
    result = _policy_results(config, layout, rollout_worker, run_seed)
    reward = build.chat_model(config, *build.load(config, reward_at, root, Role.FROZEN))
    asking = config.model_copy(update={"judge": config.judge.model_copy(update={"m": evaluate.votes})})
    evaluation = kind_of(config).evaluation(asking, family, reward, prompts)
    result |= evaluation.results(panels, run_seed)
    result["accepted_tasks"] = _accepted(layout, arm, seed)
    if result["accepted_tasks"]:
        accepted = accepted_tasks(layout.run(arm, seed), config.train.iterations)
        result["solvable"] = solve(config, root, family, accepted, run_seed)
    return result


def _policy_results(config: Config, layout: Layout, worker: RolloutWorker, run_seed: int) -> dict[str, Any]:
    """The policy on every panel: outcomes, lengths of the episodes, and success within fewer steps."""
    from rlanything.loop.panel import lengths, play_panel, success_within, successes

    evaluate = config.evaluate
    settings = (run_seed, evaluate.repeats, evaluate.temperature, evaluate.max_steps)
    outcomes: dict[str, Any] = {}
    steps: dict[str, Any] = {}
    within: dict[str, Any] = {}
    for split in POLICY_PANELS:
        tasks = read_tasks(layout.tasks(split))
        played = play_panel(worker, tasks, *settings)
        outcomes[split] = successes(tasks, played)
        steps[split] = lengths(tasks, played)
        within[split] = success_within(tasks, played, evaluate.max_steps)
    return {**outcomes, "episode_steps": steps, "success_within": within}


def _checkpoints(config: Config, layout: Layout, arm: str, seed: int) -> tuple[Checkpoint, Checkpoint]:
    """Policy and reward model to measure. An arm that trains no reward model has the one that judged for it."""
    policy = policy_of(config, layout, arm, seed)
    source = None if arm == BASE else config.judge_of(arm)
    return policy, config.model.reward if source is None else trained_reward(layout.root, source, seed)


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
