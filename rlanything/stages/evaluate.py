"""Stage `evaluate`: measures the final checkpoints of every seed of an arm on the frozen panels, task by task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rlanything.config import BASE, BASE_COOLED, CONTROLS, Checkpoint, Config
from rlanything.core.printable import counted
from rlanything.core.seeds import derive_seed
from rlanything.core.splits import keyed
from rlanything.engines import sources
from rlanything.files import locks
from rlanything.files.atomic import clear_leftovers
from rlanything.files.records import read_metrics, whole_metric, write_json
from rlanything.runs import launch
from rlanything.runs.layout import Layout, trained
from rlanything.runs.workers import side_by_side
from rlanything.stages import BEFORE_TRAINING, EVALUATE, LABEL, TRAIN, of_arm


def evaluate_arm(config: Config, root: Path, arm: str) -> None:
    """Write evaluation/<arm>.json (format: docs/results.md). `arm` may be a control.

    Under torchrun every process measures a part, and the first one writes the file. Raises `ConfigError`, and
    `MachineError` where another process has ended.
    """
    base = (config.model.policy, config.model.reward) if arm in CONTROLS else config.lora_bases.values()
    with launch.measuring(config), launch.in_first(lambda: _alone(config, root, arm)):
        with launch.in_first(lambda: sources.unchanged(root, *base, config.evaluate.solver)):
            results = _measure(config, root, arm)
        if launch.first_process():
            write_json(Layout(root).evaluation(arm), {"arm": arm, **results})
            print(f"evaluate: {arm}: {counted(config.train.seeds, 'seed')}")


@contextmanager
def _alone(config: Config, root: Path, arm: str) -> Iterator[None]:
    """In the block, no other command writes the arm's file, or what it is measured with."""
    source = None if arm in CONTROLS else config.judge_of(arm)
    place = Layout(root).evaluation(arm)
    apart = (*BEFORE_TRAINING, LABEL, *(of_arm(TRAIN, name) for name in {arm, source or arm}))
    with locks.stage(root, of_arm(EVALUATE, arm), place.parent, apart=apart):
        Layout(root).check_bootstrap()
        clear_leftovers(place)
        yield


def _measure(config: Config, root: Path, arm: str) -> dict[str, Any]:
    """The results of every seed, `train.workers` at a time."""
    if arm == BASE_COOLED:
        from rlanything.stages.cooling import measure_cooled

        return measure_cooled(config, root, config.model.policy)
    data = config.model_dump(by_alias=True)
    calls = [(data, root, arm, seed) for seed in range(config.train.seeds)]
    results = side_by_side(evaluate_seed, calls, launch.workers(config.train))
    return {"seeds": {str(seed): result for seed, result in enumerate(results)}}


def evaluate_seed(data: dict[str, object], root: Path, arm: str, seed: int) -> dict[str, Any]:
    """Raw results of one seed on the panels. For the same seed, `base` and all arms sample with the same seeds."""
    from rlanything.config import parse
    from rlanything.runs import build
    from rlanything.runs.executors.opened import opened

    build.one_thread()
    config = parse(data)
    with opened(config):
        return _results(config, root, arm, seed)


def _results(config: Config, root: Path, arm: str, seed: int) -> dict[str, Any]:
    """See `evaluate_seed`."""
    from rlanything.files.images import ImageStore
    from rlanything.rewards.kind import kind_of
    from rlanything.runs import build
    from rlanything.stages.label import final_panels
    from rlanything.stages.policy_panels import policy_results
    from rlanything.stages.solving import accepted_tasks, solve

    layout = Layout(root)
    panels = final_panels(config, layout)  # before minutes of work: a panel may be missing
    prompts = build.prompts(config, root)
    policy_at, reward_at = pair_of(config, layout, arm, seed)
    family = build.family(config)
    run_seed = derive_seed(config.seed, "evaluate", seed)
    evaluate = config.evaluate
    with build.player(config, policy_at, root, family, prompts) as policy:
        result = policy_results(config, layout, policy, run_seed)
    if reward_at is not None:
        asking = config.asking(m=evaluate.votes)
        images = ImageStore(layout.panel_images, layout.label_images)
        with build.judge(config, reward_at, root, images=images) as reward:
            evaluation = kind_of(config).evaluation(asking, family, reward, prompts)
            for name, labelled in panels.items():
                result |= keyed(evaluation.results(labelled, run_seed), name, panels)
    result["accepted_tasks"] = _accepted(layout, arm, seed)
    if result["accepted_tasks"]:
        accepted = accepted_tasks(layout.run(arm, seed), config.train.iterations)
        result["solvable"] = solve(config, root, family, accepted, run_seed)
    return result


def pair_of(config: Config, layout: Layout, arm: str, seed: int) -> tuple[Checkpoint, Checkpoint | None]:
    """The policy and the reward model to measure. An arm that trains no reward model has the one that judged for it.

    None: the oracle judged, so there is no reward model to measure. Raises `ConfigError`.
    """
    policy = policy_of(config, layout, arm, seed)
    if arm != BASE and config.judge_for(config.arm(arm)).is_oracle:
        return policy, None
    source = None if arm == BASE else config.judge_of(arm)
    return policy, config.model.reward if source is None else trained(
        config, layout.root, source, seed, "reward"
    )


def policy_of(config: Config, layout: Layout, arm: str, seed: int) -> Checkpoint:
    """The trained policy of a seed of an arm, or the base policy for `base`.

    Raises `ConfigError` when it is missing.
    """
    if arm == BASE:
        return config.model.policy
    config.arm(arm)
    return trained(config, layout.root, arm, seed, "policy")


def _accepted(layout: Layout, arm: str, seed: int) -> int:
    """Number of tasks that the run accepted; 0 for `base`."""
    if arm == BASE:
        return 0
    path = layout.run(arm, seed) / "metrics.jsonl"
    rows = read_metrics(path)
    return whole_metric(rows[-1] if rows else {}, "accepted_total", f"{path}:{len(rows)}")
