"""Stage `bootstrap`: the base models. Embedded ones are trained here, on the spot; real ones are only recorded.

Then the reward panel: the base policy's trajectories with the oracle's labels, and the check that the reward model
starts above chance. How the embedded models are trained stands in `warmstart`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rlanything.config import Config, ConfigError
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
from rlanything.stages import build
from rlanything.stages.layout import Layout, read_tasks, write_json, write_lines


def run(config: Config, root: Path) -> None:
    """Write models/: three checkpoints (when embedded), the reward panel and bootstrap.json."""
    build.one_thread()
    family = build.family(config)
    layout = Layout(root)
    if config.model.embedded is not None:
        from rlanything.stages import warmstart

        warmstart.train(config, root)
    else:
        model = config.model
        for name, source in (("policy", model.policy), ("reward", model.reward), ("adapter", model.adapter)):
            write_json(root / "models" / name / "source.json", source.model_dump())
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
