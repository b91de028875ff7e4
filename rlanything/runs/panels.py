"""The learning curve of a run: small panels, measured while it trains."""

from __future__ import annotations

from rlanything.config import ArmConfig, Config
from rlanything.core.splits import keyed
from rlanything.core.timing import phase
from rlanything.files.records import read_panel
from rlanything.loop.panel import play_panel, success_rate, successes
from rlanything.loop.rollout import RolloutWorker
from rlanything.rewards.protocols import PanelEvaluation
from rlanything.runs.layout import Layout, read_tasks


class Curve:
    """Measures the models of a run in every `evaluate.every`-th iteration and in the last one.

    A reward model that is not trained is measured in iteration 0 only. Raises `ConfigError` for missing panels.
    """

    def __init__(
        self,
        config: Config,
        arm: ArmConfig,
        run_seed: int,
        layout: Layout,
        rollout_worker: RolloutWorker,
        evaluation: PanelEvaluation | None,
    ) -> None:
        """evaluation: measures the reward model; None where the oracle judges: there is no reward model."""
        self.config = config
        self.arm = arm
        self.run_seed = run_seed
        self.rollout_worker = rollout_worker
        self.evaluation = evaluation
        # Read once, so that every point of the curve is measured on the same tasks.
        most = config.evaluate.curve_tasks
        self.tasks = {name: read_tasks(layout.tasks(name))[:most] for name in config.tasks.policy_panels}
        self.panels = (
            {}
            if evaluation is None
            else {
                name: evaluation.part(
                    read_panel(layout.reward_panel(name), "rlanything bootstrap"),
                    most,
                    config.evaluate.curve_rollouts,
                )
                for name in config.tasks.reward_panels
            }
        )

    @phase("panels")
    def measure(self, iteration: int) -> dict[str, float]:
        """The metrics of an iteration: `panel/<name>` of the policy, and those of the reward model.

        `crashed/<name>`: how many episodes crashed or timed out and are left out, only where any did. {} where none are
        due.
        """
        evaluate = self.config.evaluate
        if iteration % evaluate.every and iteration != self.config.train.iterations:
            return {}
        values: dict[str, float] = {}
        for name, tasks in self.tasks.items():
            settings = (self.run_seed, 1, evaluate.temperature, evaluate.max_steps)
            played = play_panel(self.rollout_worker, tasks, *settings)
            values[f"panel/{name}"] = success_rate(successes(tasks, played))
            if lost := sum(not trajectory.counts for trajectory in played):
                values[f"crashed/{name}"] = float(lost)
        if self.evaluation is not None and (self.arm.train_reward or iteration == 0):
            for name, panel in self.panels.items():
                values |= keyed(self.evaluation.curve(panel, self.run_seed), name, self.panels)
        return values
