"""The learning curve of a run: small panels, measured while it trains."""

from __future__ import annotations

from rlanything.config import ArmConfig, Config
from rlanything.core.splits import POLICY_PANELS
from rlanything.core.timing import phase
from rlanything.files.records import read_lines
from rlanything.loop.panel import measure_policy, success_rate
from rlanything.loop.rollout import RolloutWorker
from rlanything.rewards.protocols import PanelEvaluation
from rlanything.runs.layout import Layout, read_tasks


class Curve:
    """Measures the models of a run at every `evaluate.every`-th iteration, and at the end.

    Raises `ConfigError` for missing panels.
    """

    def __init__(
        self,
        config: Config,
        arm: ArmConfig,
        run_seed: int,
        layout: Layout,
        rollout_worker: RolloutWorker,
        evaluation: PanelEvaluation,
    ) -> None:
        self.config = config
        self.arm = arm
        self.run_seed = run_seed
        self.rollout_worker = rollout_worker
        self.evaluation = evaluation
        # Read once: what is measured at the end is what was measured at the beginning.
        most = config.evaluate.curve_tasks
        self.tasks = {split: read_tasks(layout.tasks(split))[:most] for split in POLICY_PANELS}
        panel = list(read_lines(layout.reward_panel, "rlanything bootstrap"))
        self.panel = evaluation.part(panel, most, config.evaluate.curve_rollouts)

    @phase("panels")
    def measure(self, iteration: int) -> dict[str, float]:
        """Metrics `panel/...` of an iteration, empty where none are due."""
        evaluate = self.config.evaluate
        if iteration % evaluate.every and iteration != self.config.train.iterations:
            return {}
        values = {}
        for split, tasks in self.tasks.items():
            settings = (self.run_seed, 1, evaluate.temperature, evaluate.max_steps)
            values[f"panel/{split}"] = success_rate(measure_policy(self.rollout_worker, tasks, *settings))
        if self.arm.train_reward or iteration == 0:
            values |= self.evaluation.curve(self.panel, self.run_seed)
        return values
