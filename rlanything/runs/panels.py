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
    """Measures the models of a run at every `evaluate.every`-th iteration, and at the end."""

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
        self.layout = layout
        self.rollout_worker = rollout_worker
        self.evaluation = evaluation

    @phase("panels")
    def measure(self, iteration: int) -> dict[str, float]:
        """Metrics `panel/...` of an iteration, empty where none are due. Raises `ConfigError` for missing panels."""
        evaluate = self.config.evaluate
        if iteration % evaluate.every and iteration != self.config.train.iterations:
            return {}
        values = {}
        for split in POLICY_PANELS:
            tasks = read_tasks(self.layout.tasks(split))[: evaluate.curve_tasks]
            settings = (self.run_seed, 1, evaluate.temperature, evaluate.max_steps)
            values[f"panel/{split}"] = success_rate(measure_policy(self.rollout_worker, tasks, *settings))
        if self.arm.train_reward or iteration == 0:
            panel = list(read_lines(self.layout.reward_panel, "rlanything bootstrap"))
            values |= self.evaluation.curve(panel[: evaluate.curve_tasks], self.run_seed)
        return values
