"""The stages of the pipeline, each declared once: the command line and dvc.yaml are made from this.

A stage depends on the data, the parameters and the code that decide its results, and on nothing else. `dvc repro` then
runs again what a change concerns and only that: `signals.lambda` retrains the arms with votes and not `outcome`,
`adaptation.*` retrains `full` alone. What changes no result (`train.workers`) is no dependency. The code is not
declared. It is found from the imports of `module`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlanything.config import BASE, ArmConfig, Config
from rlanything.core.errors import ConfigError, unknown
from rlanything.core.splits import POLICY_PANELS, TRAIN
from rlanything.core.types import Json

Columns = Mapping[str, str]
"""What fills `${item.<column>}` in the dependencies and parameters of one arm."""


@dataclass(frozen=True)
class Stage:
    """One stage. `deps`, `params`, `outs`, `metrics` and `plots` are written as dvc.yaml has them."""

    name: str
    module: str
    """The module whose imports are the stage's code."""
    help: str
    about: str
    work: Callable[[Config, Path, str], None]
    """Does the stage's work: (configuration, project, arm); the arm is '' where the stage has none."""
    deps: Callable[[Config], Sequence[str]]
    params: Sequence[str]
    outs: Sequence[Json]
    metrics: Sequence[Json] = ()
    plots: Sequence[Json] = ()
    arms: Callable[[Config], Mapping[str, Columns]] | None = None
    """The arms that the stage runs for, one at a time; None for a stage that runs once."""
    makes: Sequence[str] = ("env", "engine")
    """Sections of the configuration that name classes (`_target_`) of which the stage makes objects."""

    @property
    def engine(self) -> bool:
        """Whether models generate in it, so that the configured engine is checked before it starts."""
        return "engine" in self.makes

    def check_arm(self, config: Config, arm: str) -> None:
        """Raise `ConfigError` unless the stage runs for this arm."""
        if self.arms is not None and arm not in (known := self.arms(config)):
            raise ConfigError(f"arm {arm!r}: {unknown(arm, known)}")


def _tasks(config: Config, root: Path, arm: str) -> None:
    from rlanything.stages import tasks

    tasks.make_tasks(config, root)


def _bootstrap(config: Config, root: Path, arm: str) -> None:
    from rlanything.stages.bootstrap import stage

    stage.make_models(config, root)


def _train(config: Config, root: Path, arm: str) -> None:
    from rlanything.stages import train

    train.train_arm(config, root, arm)


def _evaluate(config: Config, root: Path, arm: str) -> None:
    from rlanything.stages import evaluate

    evaluate.evaluate_arm(config, root, arm)


def _report(config: Config, root: Path, arm: str) -> None:
    from rlanything.stages import report

    report.write_report(config, root)


def _trained(config: Config) -> dict[str, Columns]:
    return {name: _switches(arm) for name, arm in config.arms.items()}


def _switches(arm: ArmConfig) -> Columns:
    """What an arm depends on by its switches. One that lacks a switch repeats a dependency that it has anyway."""
    judged = "signals.lambda" if arm.step_votes else "signals.policy_min"
    return {
        "signals": "signals" if arm.train_reward else judged,
        "learner": "learn.reward" if arm.train_reward else "learn.policy",
        "adaptation": "adaptation" if arm.adapt else "seed",
        "adapter": "adapter" if arm.adapt else "policy",
        "critic": "critic" if arm.adapt else "judge",
        "rewrite": "adapter" if arm.adapt else "judge",
    }


def _measured(config: Config) -> dict[str, Columns]:
    """Where an arm's models are; one that trains no reward model has the first one."""
    arms = {
        name: {"policy": f"runs/{name}", "reward": f"runs/{name}" if arm.train_reward else "models/reward"}
        for name, arm in config.arms.items()
    }
    return {BASE: {"policy": "models/policy", "reward": "models/reward"}, **arms}


def _results(config: Config) -> list[str]:
    evaluations = [f"evaluation/{arm}.json" for arm in _measured(config)]
    return [*evaluations, *(f"runs/{arm}" for arm in config.arms)]


def _of(section: str, *names: str) -> tuple[str, ...]:
    """Parameters of one section."""
    return tuple(f"{section}.{name}" for name in names)


_PANELS = tuple(f"data/tasks/{panel}.jsonl" for panel in POLICY_PANELS)
_PROMPTS = tuple(
    f"${{model.prompts}}/{name}.txt" for name in ("policy_system", "policy_turn", "judge_system", "judge")
)

STAGES = (
    Stage(
        name="tasks",
        module="rlanything.stages.tasks",
        help="stage 1: make the tasks and the frozen panels",
        about="The starting buffer and the frozen evaluation panels",
        work=_tasks,
        deps=lambda config: (),
        params=("seed", "env", "tasks"),
        outs=("data/tasks",),
        makes=("env",),
    ),
    Stage(
        name="bootstrap",
        module="rlanything.stages.bootstrap.stage",
        help="stage 2: make or record the base models",
        about="The base models and the reward panel",
        work=_bootstrap,
        deps=lambda config: ("data/tasks", "${model.prompts}"),
        params=(
            "seed",
            "env",
            "engine",
            "model",
            "bootstrap",
            "judge",
            *_of("rollout", "max_steps", "temperature", "decoding", "max_tokens", "timeout_s"),
            *_of("evaluate", "temperature", "max_steps", "reward_rollouts"),
            *_of("train", "precision", "accelerator"),
        ),
        outs=("models",),
    ),
    Stage(
        name="train",
        module="rlanything.stages.train",
        help="stage 3: train one arm, all its seeds; resumes by itself",
        about="All seeds of one arm; killed, it resumes at the last published iteration",
        work=_train,
        deps=lambda config: (
            f"data/tasks/{TRAIN}.jsonl",
            *_PANELS,
            "models/policy",
            "models/reward",
            "models/${item.adapter}",
            "models/reward_panel.jsonl.gz",
            *_PROMPTS,
            "${model.prompts}/${item.critic}.txt",
            "${model.prompts}/${item.rewrite}.txt",
        ),
        params=(
            "seed",
            "env",
            "engine",
            *_of("model", "policy", "reward", "action_format", "verdict_format"),
            "arms.${key}",
            "rollout",
            "judge",
            *_of("signals", "advantage_scale", "policy_min", "policy_max"),
            "${item.signals}",
            "${item.adaptation}",
            "learn.policy",
            "${item.learner}",
            *_of(
                "learn",
                "updates",
                "epsilon",
                "beta",
                "kl_reference",
                "loss_weight",
                "importance",
                "importance_cap",
                "micro_batch_tokens",
            ),
            *_of(
                "train",
                "callbacks",
                "iterations",
                "seeds",
                "precision",
                "strategy",
                "accelerator",
                "devices",
                "save_rollouts",
            ),
            *_of("evaluate", "every", "curve_tasks", "temperature", "max_steps"),
        ),
        outs=("runs/${key}",),
        arms=_trained,
        makes=("env", "engine", "train.callbacks"),
    ),
    Stage(
        name="evaluate",
        module="rlanything.stages.evaluate",
        help="stage 4: measure one arm, or `base`, on the panels",
        about="The final checkpoints of one arm on the frozen panels",
        work=_evaluate,
        deps=lambda config: (
            "${item.policy}",
            "${item.reward}",
            *_PANELS,
            "models/reward_panel.jsonl.gz",
            *_PROMPTS,
        ),
        params=(
            "seed",
            "env",
            "engine",
            *_of("model", "policy", "reward", "action_format", "verdict_format"),
            "judge.writes",
            *_of("rollout", "decoding", "max_tokens", "timeout_s"),
            *_of("judge", "temperature", "max_tokens"),
            *_of("evaluate", "temperature", "max_steps", "repeats", "votes"),
            *_of("train", "seeds", "precision", "accelerator"),
        ),
        outs=("evaluation/${key}.json",),
        arms=_measured,
    ),
    Stage(
        name="report",
        module="rlanything.stages.report",
        help="stage 5: tables, figures and the report",
        about="The table of arms beside the paper's, figures, and report/report.md",
        work=_report,
        deps=_results,
        # The report prints the whole configuration.
        params=(
            "seed",
            "scale",
            "env",
            "engine",
            "tasks",
            "model",
            "rollout",
            "judge",
            "signals",
            "adaptation",
            "learn",
            "arms",
            "train",
            "evaluate",
        ),
        outs=tuple(
            {f"report/{name}": {"cache": False}} for name in ("report.md", "buffers.md", "buffers", "figures")
        ),
        metrics=({"report/summary.json": {"cache": False}},),
        plots=(
            {
                "report/plots/learning.csv": {
                    "cache": False,
                    "x": "iteration",
                    "y": "value",
                    "template": "learning",
                    "title": "Learning curves",
                }
            },
        ),
        makes=(),
    ),
)
