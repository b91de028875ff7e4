"""Stage `bootstrap`: the base models. Embedded ones are trained here, on the spot; real ones are only recorded.

Then the reward panel: the base policy's trajectories with the oracle's labels, and the check that the reward model
starts above chance. How the embedded models are trained stands in `warmstart`.

bootstrap.json goes before the first file of models/ is changed and comes back after the last: where it is, everything
in models/ belongs together. Models are trained in .rla/bootstrap/<key>/, so that finished ones survive a kill.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rlanything.config import Checkpoint, Config, ConfigError
from rlanything.core.ids import content_id
from rlanything.core.signals import mean_vote
from rlanything.core.theory import precision
from rlanything.core.types import Task, TaskFamily
from rlanything.loop.judge import Judge
from rlanything.loop.panel import (
    LabelledTrajectory,
    measure_policy,
    measure_reward,
    process_accuracy,
    success_rate,
)
from rlanything.loop.rollout import Assignment, Roller, Sampling
from rlanything.stages import build, disk, inputs, locks
from rlanything.stages.layout import Layout, clear_leftovers, read_tasks, write_json, write_lines


def run(config: Config, root: Path) -> None:
    """Write models/: three checkpoints (when embedded), the reward panel and bootstrap.json. Raises `ConfigError`."""
    build.one_thread()
    layout = Layout(root)
    with locks.stage(root, "bootstrap", layout.bootstrap.parent):
        work = _trained(config, root) if config.model.embedded is not None else None
        layout.bootstrap.unlink(missing_ok=True)
        disk.make(layout.bootstrap.parent)
        disk.sync(layout.bootstrap.parent)
        for path in (layout.reward_panel, layout.bootstrap):
            clear_leftovers(path)
        _install(config, root, work)
        _finish(config, root, layout)
        if work is not None:
            disk.remove(work.parent)


def _trained(config: Config, root: Path) -> Path:
    """The folder of the three embedded models, trained now as far as an earlier start did not."""
    from rlanything.stages import warmstart

    for name, source in _sources(config):
        if Path(source.path).parent != Path("models"):
            raise ConfigError(
                f"model.{name}.path = {source.path}: an embedded model is written to a folder in models/, e.g. "
                f"models/{name}"
            )
    work = root / ".rla" / "bootstrap" / _key(config, root)
    warmstart.train(config, root, work)
    return work


def _key(config: Config, root: Path) -> str:
    """Names the models by everything that they depend on, so that only the very same are kept."""
    data = [path for path in (root / "data").rglob("*") if path.is_file()]
    parts = {
        "config": config.model_dump(mode="json", by_alias=True, exclude={"arms", "scale", "train"}),
        "code": inputs.code_hashes(root),
        "inputs": inputs.file_hashes(root, [*data, *(root / config.model.prompts).glob("*.txt")]),
    }
    return content_id(parts)[:16]


def _install(config: Config, root: Path, work: Path | None) -> None:
    """Put the trained models in their places; of real ones, a note which they are."""
    for name, source in _sources(config):
        if work is None:
            write_json(root / "models" / name / "source.json", source.model_dump())
            continue
        with disk.whole(root / source.path) as folder:
            disk.copy_tree(work / name, folder)


def _sources(config: Config) -> list[tuple[str, Checkpoint]]:
    model = config.model
    return [("policy", model.policy), ("reward", model.reward), ("adapter", model.adapter)]


def _finish(config: Config, root: Path, layout: Layout) -> None:
    """The reward panel, and what the first models can do. Raises `ConfigError` for a reward model at chance."""
    family = build.family(config)
    policy_model, tokenizer = build.load(config.model.policy, root)
    reward_model, reward_tokenizer = build.load(config.model.reward, root)
    prompts = build.prompts(config, root)
    policy = build.speaker(config, policy_model, tokenizer)
    reward = build.speaker(config, reward_model, reward_tokenizer)
    roller = Roller(family, policy, prompts, config.rollout)
    judge = Judge(reward, prompts, config.judge)
    panel = label(family, read_tasks(layout.tasks("reward_panel")), roller, config)
    write_lines(layout.reward_panel, [item.to_json() for item in panel])
    report = _measure(config, layout, roller, judge, panel)
    write_json(layout.bootstrap, report)
    print("bootstrap: " + ", ".join(f"{k} {v:.3f}" for k, v in report.items() if isinstance(v, float)))
    if report["mu"] < config.bootstrap.min_mu:
        raise ConfigError(
            f"bootstrap: the first reward model has mu = {report['mu']:.3f}, below bootstrap.min_mu = "
            f"{config.bootstrap.min_mu}: its votes would mislead the policy. Raise bootstrap.reward.episodes or "
            "bootstrap.reward.steps, or lower bootstrap.reward.noise."
        )


def label(
    family: TaskFamily, tasks: Sequence[Task], roller: Roller, config: Config
) -> list[LabelledTrajectory]:
    """Rollouts of the policy on the reward panel's tasks, every step labelled by the family's oracle."""
    teacher = build.teacher(family)
    sampling = Sampling(config.seed, "reward-panel", 0, config.rollout.temperature, config.rollout.max_steps)
    work = [Assignment(k, task, config.evaluate.reward_rollouts) for k, task in enumerate(tasks)]
    by_id = {task.task_id: task for task in tasks}
    kept = [t for t in roller.run(work, sampling) if t.counts and t.steps]
    return [
        LabelledTrajectory(t, tuple(teacher.label_steps(by_id[t.task_id], [s.action for s in t.steps])))
        for t in kept
    ]


def _measure(
    config: Config, layout: Layout, roller: Roller, judge: Judge, panel: Sequence[LabelledTrajectory]
) -> dict[str, float]:
    evaluate = config.evaluate
    settings = (config.seed, 1, evaluate.temperature, evaluate.max_steps)
    rates = {
        split: success_rate(measure_policy(roller, read_tasks(layout.tasks(split)), *settings))
        for split in ("in_domain", "out_of_domain")
    }
    judged = judge.run([item.trajectory for item in panel], config.seed, 0, phase="bootstrap-mu")
    votes = [
        (item.trajectory.outcome, v.verdict)
        for item, judgements in zip(panel, judged, strict=True)
        for j in judgements
        for v in j.votes
        if v.verdict is not None
    ]
    found = precision(votes)
    scores = measure_reward(judge, panel, config.seed)
    return {
        **rates,
        "panel_success": sum(i.trajectory.outcome == 1 for i in panel) / max(1, len(panel)),
        "p_plus": found.p_plus,
        "p_minus": found.p_minus,
        "mu": found.mu,
        "rm_process": process_accuracy(scores),
        "good_steps": mean_vote([1 if ok else -1 for i in panel for ok in i.labels]) / 2 + 0.5,
    }
