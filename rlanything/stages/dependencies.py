"""The files and parameters that stages depend on under a configuration, in total and for each arm.

`declared` uses these functions in the declarations of the stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rlanything.config import BASE, BASE_COOLED, ArmConfig, Checkpoint, Config, Sampler
from rlanything.engines.sources import is_local
from rlanything.loop.prompts import NAMES
from rlanything.rewards.kind import name_of

MAKERS = ("models", "runs")
"""Folders whose checkpoints are made by stages."""

Columns = Mapping[str, str]
"""Column -> value of `${item.<column>}` in the dependencies and parameters of one arm."""


def trained(config: Config) -> dict[str, Columns]:
    """The arms that are trained, with the columns of each."""
    return {name: _switches(config, arm) for name, arm in config.arms.items()}


def _switches(config: Config, arm: ArmConfig) -> Columns:
    """The columns of an arm by its switches.

    Where a switch is off, the column repeats a dependency that every arm has.
    """
    judged = "signals.lambda" if arm.step_votes and arm.vote_weight is None else "signals.policy_min"
    loaded = "learn.policy" if config.judge_for(arm).is_oracle else "learn.reward.precision"
    question = "judge" if config.model.context == "chat" else "judge_history"
    served = {"adapter_endpoint": "endpoints.adapter" if arm.adapt else "seed"}
    counted = {"written": "signals.written" if arm.step_votes else "seed"}
    return {
        **(served if config.endpoints.served else {}),
        **(counted if writes_tests(config) else {}),
        "judge_model": _judge_model(config, arm, arm.reward_from),
        "scale": "seed" if arm.advantage == "trajectory" else "signals.advantage_scale",
        "policy_min": "signals.policy_min" if arm.outcome else "seed",
        "policy_max": "signals.policy_max" if arm.outcome else "seed",
        "signals": "signals" if arm.train_reward else judged,
        "learner": "learn.reward" if arm.train_reward else loaded,
        "adaptation": "adaptation" if arm.adapt else "seed",
        "adapter": "adapter" if arm.adapt else "policy",
        "critic": "critic" if arm.adapt else question,
        "critic_step": "critic_step" if arm.adapt else question,
        "rewrite": "adapter" if arm.adapt else question,
    }


def writes_tests(config: Config) -> bool:
    """Whether the reward model writes unit tests. What is said of them is a dependency only then."""
    return name_of(config) == "tests"


def _judge_model(config: Config, arm: ArmConfig, source: str | None) -> str:
    """The path of the arm's reward model. source: the arm that trains it; None: the base model.

    An arm with the oracle has no reward model. It repeats the dependency on the policy."""
    if config.judge_for(arm).is_oracle:
        return "models/policy"
    return "models/reward" if source is None else f"runs/{source}"


def measured(config: Config) -> dict[str, Columns]:
    """The arms and controls that are measured, with the columns of each.

    An arm that trains no reward model is measured with the one that judges for it.
    """
    arms = {
        name: {
            "policy": f"runs/{name}",
            "reward": _judge_model(config, arm, config.judge_of(name)),
            "judge": f"arms.{name}",
            "cooling": "judge.writes",
            "tasks": f"runs/{name}",
            **_practice(False),
        }
        for name, arm in config.arms.items()
    }
    return {**_controls(config), **arms}


def _controls(config: Config) -> dict[str, Columns]:
    untrained = {"policy": "models/policy", "judge": "judge.writes"}
    base = {
        "reward": "models/reward",
        "cooling": "judge.writes",
        "tasks": "models/policy",
        **_practice(False),
    }
    cooled = {
        "reward": "models/policy",
        "cooling": "evaluate.cooling",
        "tasks": "data/tasks",
        **_practice(config.model.embedded is not None),
    }
    controls: dict[str, Columns] = {BASE: untrained | base}
    if config.evaluate.cooling is not None:
        controls[BASE_COOLED] = untrained | cooled
    return controls


def _practice(left_out: bool) -> Columns:
    """The parameters that decide on which tasks embedded models practised: the largest of three numbers.

    left_out: whether these tasks are left out of what is drawn anew. Otherwise the columns repeat a parameter that
    every stage of this kind has.
    """
    return {
        f"{role}_practice": f"bootstrap.{role}.episodes" if left_out else "judge.writes"
        for role in ("policy", "reward", "adapter")
    }


def results(config: Config) -> list[str]:
    """The evaluations and runs that the report reads, and the tasks that were to be measured."""
    evaluations = [f"evaluation/{arm}.json" for arm in measured(config)]
    runs = [f"runs/{arm}" for arm in config.arms]
    return [*evaluations, *runs, *tasks_of(config.tasks.policy_panels)]


def tasks_of(panels: Sequence[str]) -> tuple[str, ...]:
    """The files with the tasks of these panels."""
    return tuple(f"data/tasks/{name}.jsonl" for name in panels)


def bootstrapped(config: Config) -> tuple[str, ...]:
    """The files with the reward panels that the bootstrap made."""
    return tuple(f"models/{name}.jsonl.gz" for name in config.tasks.reward_panels)


def final_panels(config: Config) -> tuple[str, ...]:
    """The files with the reward panels of the final measurement."""
    if not config.evaluate.own_panel:
        return bootstrapped(config)
    return tuple(
        f"labels/{name}/{labeller}.jsonl.gz"
        for name in config.tasks.reward_panels
        for labeller in config.evaluate.labellers
    )


def made(*checkpoints: Checkpoint | None) -> tuple[str, ...]:
    """The outputs of stages that hold these checkpoints: runs/<arm>, models/<name>. Other checkpoints are left out."""
    places = [Path(c.path).parts for c in checkpoints if c is not None]
    return tuple(dict.fromkeys("/".join(p[:2]) for p in places if p[0] in MAKERS and len(p) > 1))


def folders(root: Path, *checkpoints: Checkpoint | None) -> tuple[str, ...]:
    """The folders of these checkpoints that no stage makes. DVC takes those outside of the project as well.

    A name on the hub is left out: the stage `bootstrap` records its commit, and the configuration its revision.
    """
    local = [c.path for c in checkpoints if c is not None and is_local(c, root)]
    return tuple(dict.fromkeys(path for path in local if Path(path).parts[:1] not in {(m,) for m in MAKERS}))


def loaded(config: Config) -> list[Checkpoint]:
    """The checkpoints of the base models, without those in whose place an endpoint answers."""
    model = config.model
    roles = {"policy": model.policy, "reward": model.reward, "adapter": model.adapter}
    return [checkpoint for role, checkpoint in roles.items() if role not in config.endpoints.served]


def labelling(config: Config) -> tuple[Checkpoint | None, ...]:
    """The checkpoints that label the final panels, without judges in whose place an endpoint answers."""
    evaluate, served = config.evaluate, config.endpoints.judges
    return (evaluate.reward_policy, *(of for name, of in evaluate.judges.items() if name not in served))


def own_prompts(*samplers: Sampler | None) -> tuple[str, ...]:
    """The folders of prompt templates that these models have of their own."""
    folders = [sampler.prompts for sampler in samplers if sampler is not None]
    return tuple(dict.fromkeys(folder for folder in folders if folder is not None))


def keys(section: str, *names: str) -> tuple[str, ...]:
    """The dotted names of parameters of one section."""
    return tuple(f"{section}.{name}" for name in names)


def prompts(config: Config) -> list[str]:
    """The prompt templates of policy and reward model."""
    names = [name for name in NAMES[config.model.context] if name not in ("critic", "critic_step", "adapter")]
    return [f"${{model.prompts}}/{name}.txt" for name in names]
