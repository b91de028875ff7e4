"""What must hold between the sections of a configuration. Each check raises `ValueError` with the key and its value."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rlanything.config.endpoints import NO_ENDPOINT
from rlanything.config.evaluation import BASE, BASE_COOLED, CONTROLS, FOLDER_NAME, ORACLE, names_folder
from rlanything.core.errors import unknown
from rlanything.core.printable import safe, shown

if TYPE_CHECKING:
    from rlanything.config.experiment import Config

READ_LIVE = (".TransformersEngine", ".VllmEngine")
"""Engines that cannot sample while the model trains: one reads the trainer's weights, one needs its main thread."""
SEES = (".TransformersEngine", ".VllmEngine", ".VllmServers")
"""Engines that show pictures."""
_ALTERNATIVE = {"policy": "", "reward": ", or an endpoint in the reward model's or the judge's place"}
"""What a message says of another way to show a role pictures, after the engines or checkpoints that can."""


def _names_classes(config: Config) -> None:
    if "base_url" in config.engine or "engines.openai" in str(config.engine.get("_target_")):
        raise ValueError(f"engine = openai: {NO_ENDPOINT}")
    for key in ("env", "engine"):
        if "_target_" not in getattr(config, key):
            raise ValueError(
                f"{key}._target_ is missing: name the class, e.g. envs.alfworld.family.AlfworldFamily"
            )


def _waits_for_environments(config: Config) -> None:
    limit, longest, own = config.rollout.timeout_s, config.executor.timeout_s, config.env.get("timeout", 0)
    ours = str(config.env["_target_"]).startswith("envs.")  # a family of others may mean something else by it
    if ours and isinstance(own, int | float) and own > limit:
        raise ValueError(
            f"env.timeout = {_brief(own)}: must be at most rollout.timeout_s = {limit:g}, which ends the episode first"
        )
    if longest <= limit:
        raise ValueError(
            f"executor.timeout_s = {longest:g}: must be above rollout.timeout_s = {limit:g}, or a worker whose "
            "environment hangs is ended before the episode is"
        )
    if config.train.processes > 1 and config.train.timeout_s <= longest:
        raise ValueError(
            f"train.timeout_s = {config.train.timeout_s:g}: must be above executor.timeout_s = {longest:g}, or a "
            "worker that hangs in one process of a run ends the others, which wait for it"
        )


def _brief(number: float) -> str:
    try:
        return f"{number:g}"
    except OverflowError:  # a whole number beyond all floats
        return shown(number)


def _fits_tests(config: Config) -> None:
    if config.judge.writes != "tests":  # this room is below rewards/, so `rewards.kind` cannot be asked
        return
    if config.evaluate.labels != ORACLE:
        raise ValueError(
            f"evaluate.labels = {config.evaluate.labels!r}: with judge.writes = tests programs are run and "
            "nobody judges them; must be oracle"
        )
    if config.model.action_format != "verbatim":
        raise ValueError(
            f"model.action_format = {config.model.action_format!r}: with judge.writes = tests the reply is the "
            "answer; must be verbatim (and model.prompts a folder that asks for programs, as "
            "experiments/prompts/paper/coding does)"
        )
    for name, arm in config.arms.items():
        if not arm.outcome:
            raise ValueError(
                f"arms.{name}.outcome = False: with judge.writes = tests a reward always holds the pass rate"
            )


def _has_room(config: Config) -> None:
    """What bounds a prompt with its reply has room for the reply. An endpoint has a context of its own."""
    rooms = {"engine.context": config.engine.get("context")}
    if config.model.embedded is not None:
        rooms["model.embedded.positions"] = config.model.embedded.positions
    lengths = {"policy": ("rollout", config.rollout.max_tokens), "reward": ("judge", config.judge.max_tokens)}
    lengths["adapter"] = "adaptation", config.adaptation.max_tokens
    for key, room in rooms.items():
        for role, (name, length) in lengths.items():
            if type(room) is int and role not in config.endpoints.served and length >= room:
                raise ValueError(f"{name}.max_tokens = {length}: must be below {key} = {room}")


def _decodes_together(config: Config) -> None:
    batch = config.engine.get("max_batch", 1)  # the one argument that every engine has
    if not isinstance(batch, int) or isinstance(batch, bool) or batch < 1:
        raise ValueError(f"engine.max_batch = {batch!r}: must be a whole number of at least 1")


def _shows_pictures(config: Config) -> None:
    """What else must hold where a model is shown pictures. The model itself is looked at when it is loaded."""
    images, served = config.model.images, config.endpoints
    if images.any and config.judge.writes != "votes":
        role = "policy" if images.policy else "reward"
        raise ValueError(
            f"model.images.{role} = {getattr(images, role)}: does not go with judge.writes, which must be 'votes'; "
            "set either back"
        )
    own = {"policy": images.policy, "reward": 0 if served.reward else images.reward}
    judges = images.reward if set(config.evaluate.labellers) - {ORACLE, *served.judges} else 0
    # Judges are shown as many pictures as the reward model is.
    for role, most in (*own.items(), ("reward", judges)):
        where = f"model.images.{role} = {most}"
        if most and not str(config.engine.get("_target_")).endswith(SEES):
            raise ValueError(
                f"{where}: only engine=transformers, vllm and vllm_servers read pictures{_ALTERNATIVE[role]}"
            )
    for role, most in own.items():
        if most and config.model.embedded is not None:
            raise ValueError(
                f"model.images.{role} = {most}: embedded models read text alone. Use a checkpoint of Qwen2.5-VL "
                f"or Qwen3-VL{_ALTERNATIVE[role]}, or 0"
            )


def _trains_low_rank(config: Config) -> None:
    """What must hold where LoRA trains a model. The checkpoint's own matrices are looked at when it is loaded."""
    for role, lora in config.learn.lora.items():
        sizes = config.model.embedded
        least = math.inf if sizes is None else min(sizes.matrix(name) for name in lora.targets)
        if lora.rank > least:
            raise ValueError(
                f"learn.{role}.lora.rank = {lora.rank}: must be at most {least}, the smaller side of the smallest "
                "of its targets (model.embedded)"
            )


def _samples_ahead(config: Config) -> None:
    """What must hold where a batch is sampled while another one trains."""
    engine = str(config.engine["_target_"])
    if config.train.staleness and engine.endswith(READ_LIVE):
        raise ValueError(
            f"train.staleness = {config.train.staleness}: {engine} samples in the trainer's process from what is "
            "being trained; needs an engine with weights of its own: engine=native or engine=vllm_servers"
        )


def _trains_arms(config: Config) -> None:
    for name, arm in config.arms.items():
        if not names_folder(name) or name in CONTROLS:
            raise ValueError(
                f"arms.{safe(name)}: an arm names a folder: {FOLDER_NAME}, and not {BASE!r} or {BASE_COOLED!r}"
            )
        _check_rewards(config, name)
        if config.judge_for(arm).is_oracle:
            _check_oracle(config, name)
        if arm.reward_from is not None:
            _check_source(config, name, arm.reward_from)


def _has_tasks(config: Config) -> None:
    if config.rollout.tasks > config.tasks.train:
        raise ValueError(
            f"rollout.tasks = {config.rollout.tasks}: must not exceed tasks.train = {config.tasks.train}"
        )


def _trains_no_endpoint(config: Config) -> None:
    trained = [name for name, arm in config.arms.items() if arm.train_reward]
    if config.endpoints.reward is not None and trained:
        raise ValueError(
            f"endpoints.reward.model = {config.endpoints.reward.model!r}: arms.{trained[0]}.train_reward = True, and "
            "an endpoint returns text, not token ids with log-probs, so it cannot be trained. Allowed: arms with "
            f"train_reward: false; leave out {', '.join(f'~arms.{name}' for name in trained)}"
        )


def _knows_judges(config: Config) -> None:
    for name in config.endpoints.judges:
        if name not in config.evaluate.judges:
            raise ValueError(
                f"endpoints.judges.{name}: {unknown(name, config.evaluate.judges)} (evaluate.judges)"
            )


def _check_rewards(config: Config, name: str) -> None:
    """Raise `ValueError` where every reward of an arm would be 0, or every reply would be compared with none."""
    arm, signals = config.arms[name], config.signals
    if not arm.outcome and not arm.lambda_of(signals):
        raise ValueError(
            f"signals.lambda = {signals.lambda_}: with arms.{name}.outcome = False there is no other reward; must be "
            f"above 0, or arms.{name}.vote_weight must"
        )
    if arm.train_reward and not arm.outcome and not signals.consistency_lambda:
        raise ValueError(
            f"signals.reward_lambda = {signals.consistency_lambda}: with arms.{name}.outcome = False the reward model "
            "has no other reward; must be above 0"
        )
    if arm.train_reward and config.judge.m == 1:
        raise ValueError(
            f"judge.m = 1: arms.{name}.train_reward = True, and a reply teaches the reward model by what the others to "
            "the same question are worth; must be at least 2"
        )


def _check_oracle(config: Config, name: str) -> None:
    """Raise `ValueError` where an arm that the oracle judges for is to train a reward model, or to take one."""
    for key in ("train_reward", "reward_from"):
        value = getattr(config.arms[name], key)
        if value:
            why = "which has nothing to train" if key == "train_reward" else "which is no reward model"
            raise ValueError(
                f"arms.{name}.{key} = {value!r}: its judge is the oracle, {why}. Give the arm a model "
                f"(arms.{name}.judge={{source: model}}), or leave it out (~arms.{name})"
            )


def _check_source(config: Config, name: str, source: str) -> None:
    """Raise `ValueError` unless the arm `source` trains a reward model, not with one that comes from `name`."""
    where = f"arms.{name}.reward_from = {source!r}"
    if source not in config.arms:
        raise ValueError(f"{where}: {unknown(source, list(config.arms))}")
    if not config.arms[source].train_reward:
        trained = [other for other, arm in config.arms.items() if arm.train_reward and other != name]
        raise ValueError(
            f"{where}: trains no reward model (train_reward); these do: {', '.join(trained) or 'none'}"
        )
    seen, following = [name], config.arms[name].reward_from
    while following in config.arms and following not in seen:
        seen.append(following)
        following = config.arms[following].reward_from
    if following == name:
        raise ValueError(f"{where}: in a circle: {' -> '.join([*seen, name])}")


CHECKS = (
    _names_classes,
    _waits_for_environments,
    _fits_tests,
    _has_room,
    _decodes_together,
    _shows_pictures,
    _trains_low_rank,
    _samples_ahead,
    _trains_arms,
    _has_tasks,
    _trains_no_endpoint,
    _knows_judges,
)
"""All checks, in the order in which they are made: the first problem is the one that is told."""
