"""Making the reward panel: the base policy tries the panel's tasks, and the kind of reward model does the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rlanything.config import Config
from rlanything.core.types import Task
from rlanything.loop.rollout import Assignment, RolloutWorker, Sampling
from rlanything.rewards.protocols import PanelEvaluation, RewardPanel


def make_panel(
    config: Config, tasks: Sequence[Task], worker: RolloutWorker, evaluation: PanelEvaluation
) -> RewardPanel:
    """The panel. Raises `ConfigError` for a family that does not offer what it takes."""
    sampling = Sampling(config.seed, "reward-panel", 0, config.rollout.temperature, config.rollout.max_steps)
    work = [Assignment(k, task, config.evaluate.reward_rollouts) for k, task in enumerate(tasks)]
    tried = [t for t in worker.roll_out(work, sampling) if t.counts and t.steps]
    made = evaluation.make(tasks, tried)
    solved = sum(t.outcome == 1 for t in tried) / max(1, len(tried))
    return replace(made, metrics={"panel_success": solved, **made.metrics})
