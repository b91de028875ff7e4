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

from rlanything.config import BASE, ArmConfig, Checkpoint, Config
from rlanything.core.errors import ConfigError, unknown
from rlanything.core.splits import POLICY_PANELS, TRAIN
from rlanything.core.types import Json
from rlanything.loop.prompts import NAMES

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

    needed: Callable[[Config], bool] = lambda config: True
    """Whether the pipeline of a configuration has the stage."""

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


def _label(config: Config, root: Path, arm: str) -> None:
    from rlanything.stages import label

    label.make_labels(config, root)


def _report(config: Config, root: Path, arm: str) -> None:
    from rlanything.stages import report

    report.write_report(config, root)


def _trained(config: Config) -> dict[str, Columns]:
    return {name: _switches(arm) for name, arm in config.arms.items()}


def _switches(arm: ArmConfig) -> Columns:
    """What an arm depends on by its switches. One that lacks a switch repeats a dependency that it has anyway."""
    judged = "signals.lambda" if arm.step_votes else "signals.policy_min"
    return {
        "judge_model": "models/reward" if arm.reward_from is None else f"runs/{arm.reward_from}",
        "scale": "signals.advantage_scale" if arm.advantage == "step" else "seed",
        "policy_min": "signals.policy_min" if arm.outcome else "seed",
        "policy_max": "signals.policy_max" if arm.outcome else "seed",
        "signals": "signals" if arm.train_reward else judged,
        "learner": "learn.reward" if arm.train_reward else "learn.policy",
        "adaptation": "adaptation" if arm.adapt else "seed",
        "adapter": "adapter" if arm.adapt else "policy",
        "critic": "critic" if arm.adapt else "judge",
        "critic_step": "critic_step" if arm.adapt else "judge",
        "rewrite": "adapter" if arm.adapt else "judge",
    }


def _measured(config: Config) -> dict[str, Columns]:
    """Where an arm's models are; one that trains no reward model has the one that judges for it."""
    judges = {name: config.judge_of(name) for name in config.arms}
    arms = {
        name: {"policy": f"runs/{name}", "reward": "models/reward" if judge is None else f"runs/{judge}"}
        for name, judge in judges.items()
    }
    return {BASE: {"policy": "models/policy", "reward": "models/reward"}, **arms}


def _results(config: Config) -> list[str]:
    evaluations = [f"evaluation/{arm}.json" for arm in _measured(config)]
    return [*evaluations, *(f"runs/{arm}" for arm in config.arms)]


def _reward_panel(config: Config) -> tuple[str, ...]:
    """The files with the reward panel of the final measurement."""
    if not config.evaluate.own_panel:
        return ("models/reward_panel.jsonl.gz",)
    return tuple(f"labels/{name}.jsonl.gz" for name in config.evaluate.labellers)


def _made(*checkpoints: Checkpoint | None) -> tuple[str, ...]:
    """Those checkpoints that a stage makes, as DVC knows them: runs/<arm>, models/<name>."""
    places = [Path(c.path).parts for c in checkpoints if c is not None]
    return tuple(dict.fromkeys("/".join(p[:2]) for p in places if p[0] in ("models", "runs") and len(p) > 1))


def _of(section: str, *names: str) -> tuple[str, ...]:
    """Parameters of one section."""
    return tuple(f"{section}.{name}" for name in names)


_PANELS = tuple(f"data/tasks/{panel}.jsonl" for panel in POLICY_PANELS)


def _prompts(config: Config) -> list[str]:
    """The prompt templates of policy and reward model."""
    names = [name for name in NAMES[config.model.context] if name not in ("critic", "critic_step", "adapter")]
    return [f"${{model.prompts}}/{name}.txt" for name in names]


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
            "${item.judge_model}",
            "models/${item.adapter}",
            "models/reward_panel.jsonl.gz",
            *_prompts(config),
            "${model.prompts}/${item.critic}.txt",
            "${model.prompts}/${item.critic_step}.txt",
            "${model.prompts}/${item.rewrite}.txt",
        ),
        params=(
            "seed",
            "env",
            "engine",
            *_of("model", "policy", "reward", "action_format", "verdict_format", "context"),
            "arms.${key}",
            "rollout",
            "judge",
            "${item.scale}",
            "${item.policy_min}",
            "${item.policy_max}",
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
            *_of("evaluate", "every", "curve_tasks", "curve_rollouts", "temperature", "max_steps"),
        ),
        outs=("runs/${key}",),
        arms=_trained,
        makes=("env", "engine", "train.callbacks"),
    ),
    Stage(
        name="label",
        module="rlanything.stages.label",
        help="label the final reward panel with judges' votes, or make it of another policy's trajectories",
        about="The reward panel of the final measurement, with the labels of its judges",
        work=_label,
        deps=lambda config: (
            "data/tasks/reward_panel.jsonl",
            "models/reward_panel.jsonl.gz",
            *_made(config.evaluate.reward_policy, *config.evaluate.judges.values()),
            "${model.prompts}",
            *(judge.prompts for judge in config.evaluate.judges.values() if judge.prompts is not None),
        ),
        params=(
            "seed",
            "env",
            "engine",
            *_of("model", "action_format", "verdict_format", "context"),
            *_of("rollout", "max_steps", "temperature", "decoding", "max_tokens", "timeout_s"),
            "judge",
            *_of("evaluate", "labels", "judges", "reward_policy", "reward_rollouts"),
            *_of("train", "precision", "accelerator"),
        ),
        outs=("labels",),
        needed=lambda config: config.evaluate.own_panel,
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
            *_reward_panel(config),
            *_made(config.evaluate.solver),
            *_prompts(config),
        ),
        params=(
            "seed",
            "env",
            "engine",
            *_of("model", "policy", "reward", "action_format", "verdict_format", "context"),
            "judge.writes",
            *_of("rollout", "temperature", "decoding", "max_tokens", "timeout_s"),
            *_of("judge", "temperature", "max_tokens"),
            *_of("evaluate", "temperature", "max_steps", "repeats", "votes"),
            *_of("evaluate", "labels", "judges", "reward_policy", "solver", "solver_tries"),
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
