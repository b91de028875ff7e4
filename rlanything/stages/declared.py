"""The stages of the pipeline, each declared once. The command line and dvc.yaml are generated from these declarations.

A stage depends on the data, the parameters and the code that decide its results, and on nothing else. So `dvc repro`
only runs the stages that a change affects: a new `signals.lambda` retrains the arms with votes, but not `outcome`; a
new `adaptation.*` retrains `full` only. `train.workers` changes no result, so it is not a dependency. `engine` and
`judge` are whole sections, with the thresholds in them that are no part of a run's name. Code is not declared: it is
found from the imports of `module`.
"""

from __future__ import annotations

from pathlib import Path

from rlanything import stages
from rlanything.config import CONTROLS, Config
from rlanything.core.splits import TRAIN
from rlanything.stages.dependencies import (
    bootstrapped,
    final_panels,
    keys,
    labelling,
    loaded,
    made,
    measured,
    own_prompts,
    prompts,
    results,
    tasks_of,
    trained,
)
from rlanything.stages.stage import Stage

PICTURES = ("report/figures/gains.svg", "report/figures/learning.svg")
"""Figures of the report that `dvc plots` shows as they are, so that its page says something without a network."""


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
    """Where it was measured is recorded here: no number depends on that, so it is no code of the stage."""
    from rlanything.runs import families, launch, provenance
    from rlanything.runs.imports import code_files, targets
    from rlanything.runs.layout import Layout
    from rlanything.runs.resuming.began import check_began, measured_of
    from rlanything.stages import evaluate, measured

    if arm not in CONTROLS and not stages.by_dvc():  # DVC trains again by itself
        for name in measured_of(config, arm):
            check_began(config, root, name)
    if not launch.first_process():
        evaluate.evaluate_arm(config, root, arm)
        return
    data = config.model_dump(by_alias=True)
    code = code_files([evaluate.__name__, *targets([data["env"], data["engine"]])])
    begun, used = provenance.start(root, {}, families.programs(config), code), measured.used(Layout(root))
    evaluate.evaluate_arm(config, root, arm)
    if Layout(root).evaluation(arm).is_file():
        provenance.write_measured(root, arm, begun, used)


def _label(config: Config, root: Path, arm: str) -> None:
    from rlanything.stages import label

    label.make_labels(config, root)


def _report(config: Config, root: Path, arm: str) -> None:
    from rlanything.stages import report

    report.write_report(config, root)


STAGES = (
    Stage(
        name=stages.TASKS,
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
        name=stages.BOOTSTRAP,
        module="rlanything.stages.bootstrap.stage",
        help="stage 2: make or record the base models",
        about="The base models and the reward panels",
        work=_bootstrap,
        deps=lambda config: ("data/tasks", "${model.prompts}"),
        params=(
            "seed",
            "env",
            "tasks.panels",
            "engine",
            "endpoints.reward",
            "model",
            "bootstrap",
            *keys("judge", "writes", "m", "temperature", "max_tokens"),
            *keys("rollout", "max_steps", "temperature", "decoding", "max_tokens", "timeout_s"),
            *keys("evaluate", "temperature", "max_steps", "reward_rollouts"),
            *keys("learn", "policy.precision", "reward.precision"),
            *keys("train", "precision", "accelerator"),
        ),
        outs=("models",),
        loads=loaded,
    ),
    Stage(
        name=stages.TRAIN,
        module="rlanything.stages.train",
        help="stage 3: train one arm, all its seeds; resumes by itself",
        about="All seeds of one arm; killed, it resumes at the last published iteration",
        work=_train,
        deps=lambda config: (
            f"data/tasks/{TRAIN}.jsonl",
            *tasks_of(config.tasks.policy_panels),
            "models/policy",
            "${item.judge_model}",
            "models/${item.adapter}",
            *bootstrapped(config),
            *prompts(config),
            "${model.prompts}/${item.critic}.txt",
            "${model.prompts}/${item.critic_step}.txt",
            "${model.prompts}/${item.rewrite}.txt",
        ),
        params=(
            "seed",
            "env",
            "tasks.panels",
            "engine",
            "endpoints.reward",
            "${item.adapter_endpoint}",
            *keys("model", "policy", "reward", "action_format", "verdict_format", "context", "images"),
            "arms.${key}",
            "rollout",
            "judge",
            "${item.scale}",
            "${item.policy_min}",
            "${item.policy_max}",
            "${item.signals}",
            "${item.written}",
            "${item.adaptation}",
            "learn.policy",
            "${item.learner}",
            *keys(
                "learn",
                "updates",
                "epsilon",
                "beta",
                "kl_reference",
                "loss_weight",
                "importance",
                "importance_cap",
                "importance_mask",
                "micro_batch_tokens",
                "gradient_checkpointing",
            ),
            *keys(
                "train",
                "callbacks",
                "iterations",
                "seeds",
                "precision",
                "strategy",
                "accelerator",
                "devices",
                "nodes",
                "offload",
                "exchange",
                "staleness",
                "save_rollouts",
            ),
            *keys("evaluate", "every", "curve_tasks", "curve_rollouts", "temperature", "max_steps"),
        ),
        # Git keeps the record. It is an output, so that DVC's run cache cannot bring back a run without its record.
        outs=("runs/${key}", {"provenance/${key}.json": {"cache": False}}),
        arms=trained,
        makes=("env", "engine", "train.callbacks"),
    ),
    Stage(
        name=stages.LABEL,
        module="rlanything.stages.label",
        help="make the final reward panels, where judges label them or they are of another policy's trajectories",
        about="The reward panels of the final measurement, with the labels of their judges",
        work=_label,
        deps=lambda config: (
            *tasks_of(config.tasks.reward_panels),
            *bootstrapped(config),
            *made(*labelling(config)),
            "${model.prompts}",
            *own_prompts(config.evaluate.reward_policy, *config.evaluate.judges.values()),
        ),
        params=(
            "seed",
            "env",
            "tasks.panels",
            "engine",
            "endpoints.judges",
            *keys("model", "action_format", "verdict_format", "context", "images"),
            *keys("rollout", "max_steps", "temperature", "decoding", "max_tokens", "timeout_s"),
            *keys("judge", "writes", "m", "temperature", "max_tokens"),
            *keys("evaluate", "labels", "judges", "reward_policy", "reward_rollouts"),
            *keys("learn", "policy.precision", "reward.precision"),
            *keys("train", "precision", "accelerator"),
        ),
        outs=("labels",),
        loads=labelling,
        needed=lambda config: config.evaluate.own_panel,
        why_not="evaluate.labels = 'oracle' and evaluate.reward_policy = null: nothing to label; the final models are "
        "measured on the panels that `rlanything bootstrap` made",
    ),
    Stage(
        name=stages.EVALUATE,
        module="rlanything.stages.evaluate",
        help="stage 4: measure one arm, `base` or `base_cooled` on the panels",
        about="The final checkpoints of one arm on the frozen panels",
        work=_evaluate,
        deps=lambda config: (
            "${item.policy}",
            "${item.reward}",
            "${item.tasks}",
            *tasks_of(config.tasks.policy_panels),
            *final_panels(config),
            *made(config.evaluate.solver, *config.lora_bases.values()),
            *own_prompts(config.evaluate.solver),
            *prompts(config),
        ),
        params=(
            "seed",
            "env",
            "tasks.panels",
            "engine",
            "endpoints.reward",
            *keys("model", "policy", "reward", "action_format", "verdict_format", "context", "images"),
            "judge.writes",
            "judge.source",
            "${item.judge}",
            "${item.cooling}",
            "${item.policy_practice}",
            "${item.reward_practice}",
            "${item.adapter_practice}",
            *keys("rollout", "temperature", "decoding", "max_tokens", "timeout_s"),
            *keys("judge", "temperature", "max_tokens"),
            *keys("evaluate", "temperature", "max_steps", "repeats", "votes"),
            *keys("evaluate", "labels", "judges", "reward_policy", "solver", "solver_tries"),
            *keys("learn", "policy.lora", "reward.lora", "policy.precision", "reward.precision"),
            *keys("train", "seeds", "precision", "accelerator"),
        ),
        outs=("evaluation/${key}.json",),
        loads=lambda config: (config.evaluate.solver, *config.lora_bases.values()),
        arms=measured,
    ),
    Stage(
        name=stages.REPORT,
        module="rlanything.stages.report",
        help="stage 5: tables, figures and the report",
        about="The table of arms beside the paper's, figures, and report/report.md",
        work=_report,
        deps=results,
        # The report prints the whole configuration.
        params=(
            "seed",
            "scale",
            "env",
            "engine",
            "endpoints",
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
            {f"report/{name}": {"cache": False}}
            for name in ("report.md", "index.html", "buffers.md", "buffers", "figures", "summary.json")
        ),
        # Few numbers: `dvc exp show` has a column for each.
        metrics=({"report/headline.json": {"cache": False}},),
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
