"""Real checkpoints before any of them is loaded: what cannot work here is refused, and what was made for the embedded
models of 0.4 million weights is warned about. Nothing here imports torch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from rlanything import targets
from rlanything.config import Checkpoint, Config
from rlanything.config.evaluation import Sampler
from rlanything.core.errors import ConfigError, UserError
from rlanything.core.printable import one_line
from rlanything.engines.sources import cached, is_local, lacking
from rlanything.files.reader import read_object
from rlanything.learn.trainable import why_untrainable
from rlanything.planning.samplers import NATIVE, SERVERS, VLLM

NATIVE_TYPES = ("qwen2", "llama")
"""Values of `model_type` in a config.json that engine=native can run."""
HIGHEST_LR = 5e-5
"""Full fine-tuning by reinforcement stays far below this. The paper has 1e-6, our default for embedded models 5e-4."""
LOWEST_NARROW_LR = 5e-5
"""AdamW moves a weight by about the learning rate. A bfloat16 number near 0.02 takes moves of less than this away again
when it is rounded: half the distance to its neighbour is 6e-5."""
NARROW = "bf16-true"
"""The precision in which weights that an optimizer changes are bfloat16 too."""
SHORTEST = {"rollout.max_tokens": 64, "judge.max_tokens": 64, "adaptation.max_tokens": 128}
"""Tokens that a thought and a boxed answer need at least, by key."""
LENGTHS = {"policy": "rollout", "reward": "judge", "adapter": "adaptation"}
"""The section whose `max_tokens` is the longest reply of a role."""
ADVICE = "scale=local and scale=single-gpu have values for real checkpoints (docs/checkpoints.md)"


def roles(config: Config) -> Mapping[str, Checkpoint]:
    """The checkpoints by role, without those that an endpoint stands for; none for embedded models."""
    if config.model.embedded is not None:
        return {}
    return {role: source for role, source in _chosen(config).items() if role not in config.endpoints.served}


def _chosen(config: Config) -> Mapping[str, Checkpoint]:
    return {"policy": config.model.policy, "reward": config.model.reward, "adapter": config.model.adapter}


def check(config: Config, root: Path) -> None:
    """Raise `ConfigError` for a folder that holds no checkpoint, for one that the engine cannot run or no training can,
    and for a path of one's own where the models are embedded.

    Of a name on the hub only what the cache of this machine has is looked at. A checkpoint of `evaluate` in runs/ or
    models/ that is not there yet is left out: a stage may make it.
    """
    _check_embedded(config)
    for role, source in roles(config).items():
        key, section = f"model.{role}.path = {source.path}", LENGTHS[role]
        length = f"{section}.max_tokens", getattr(config, section).max_tokens
        if is_local(source, root):
            found = _check_folder(key, root / source.path, source.allow_pickle)
            _check_architecture(key, found, config)
            _check_room(key, found, *length)
        elif file := cached(source.path, "config.json", source.revision):
            found = read_object(file)
            _check_trains(key, role, found, config)
            _check_room(key, found, *length)
    for key, source, role in _of_evaluation(config):
        _check_measuring(key, source, role, config, root)


def _check_embedded(config: Config) -> None:
    """Raise `ConfigError` where a checkpoint is named and embedded models would be made in its place."""
    if config.model.embedded is None:
        return
    for role, source in _chosen(config).items():
        if Path(source.path) != Path("models", role):
            raise ConfigError(
                f"model.{role}.path = {source.path}: with model.embedded the models are made, and this one's path is "
                f"models/{role}. Checkpoints of your own: `model=local path={source.path}` for all three roles, then "
                "model.ROLE.path=... for another one in a role (docs/checkpoints.md)"
            )


def _check_measuring(key: str, source: Sampler, role: str, config: Config, root: Path) -> None:
    """Raise `ConfigError` for a checkpoint of `evaluate` that no training makes, and that is missing or lacks a file,
    and for one that is there and cannot do what it is for."""
    local, section, of_path = is_local(source, root), LENGTHS[role], f"{key}.path = {source.path}"
    if local and not _made_later(root / source.path, root):
        _check_folder(of_path, root / source.path, source.allow_pickle)
    file = (
        root / source.path / "config.json" if local else cached(source.path, "config.json", source.revision)
    )
    if file is None or not file.is_file():
        return
    found = read_object(file)
    if local:
        _check_sees(of_path, role, found, config)
    if source.max_tokens is None:
        _check_room(of_path, found, f"{section}.max_tokens", getattr(config, section).max_tokens)
    else:
        _check_room(of_path, found, f"{key}.max_tokens", source.max_tokens)


def _made_later(folder: Path, root: Path) -> bool:
    """Whether a stage may make a checkpoint here: a training in runs/, and `bootstrap` in models/."""
    path = Path(os.path.abspath(folder))
    return any(path.is_relative_to(os.path.abspath(root / made)) for made in ("runs", "models"))


def _check_room(key: str, found: Mapping[str, Any], name: str, length: int) -> None:
    """Raise `ConfigError` where a checkpoint has no positions for a reply of `length` tokens after any prompt.

    found: its config.json. One that does not say how many positions it has is left out.
    """
    inner = found.get("text_config")
    room = {**found, **(inner if isinstance(inner, Mapping) else {})}.get("max_position_embeddings")
    if type(room) is int and length >= room:
        raise ConfigError(
            f"{name} = {length}: must be below max_position_embeddings = {room}, what {key} reads of a prompt with its "
            "reply"
        )


def _of_evaluation(config: Config) -> Iterator[tuple[str, Sampler, str]]:
    """The checkpoints that `evaluate` uses: key, checkpoint, and whose pictures it is shown, `policy` or `reward`."""
    evaluate = config.evaluate
    for name in ("solver", "reward_policy"):
        if (source := getattr(evaluate, name)) is not None:
            yield f"evaluate.{name}", source, "policy"
    for name in evaluate.labellers:
        if name in evaluate.judges and name not in config.endpoints.judges:
            yield f"evaluate.judges.{name}", evaluate.judges[name], "reward"


def warnings(config: Config, root: Path) -> list[str]:
    """What `check` refuses, then what will probably not work with these checkpoints, and where better values are."""
    if not roles(config):
        return _refused(config, root)
    found = [*_toy_values(config), *_unlike(config, root)]
    told = [*lost_updates(config), *_on_one_device(config)]
    return [*_refused(config, root), *told, *found, *([ADVICE] if found else [])]


def _refused(config: Config, root: Path) -> list[str]:
    try:
        check(config, root)
    except ConfigError as error:
        return [str(error)]
    return []


def check_there(key: str, folder: Path) -> None:
    """Raise `ConfigError` with the nearest name where a checkpoint's folder is missing. key: its key and its value."""
    if not folder.is_dir():
        beside = [p.name for p in folder.parent.iterdir() if p.is_dir()] if folder.parent.is_dir() else []
        near = get_close_matches(folder.name, beside, n=1)
        hint = f"did you mean {folder.parent / near[0]}?" if near else "give a folder or a name on the hub"
        raise ConfigError(f"{key}: no such folder; {hint}")


def _check_folder(key: str, folder: Path, allow_pickle: bool) -> Mapping[str, Any]:
    """The config.json of a checkpoint's folder. Raises `ConfigError` for a folder that lacks one of its files."""
    check_there(key, folder)
    if not (folder / "config.json").is_file():
        raise ConfigError(f"{key}: no config.json there: not a checkpoint as `save_pretrained` writes it")
    if problem := lacking(folder, allow_pickle):
        raise ConfigError(f"{key}: {problem}")
    return read_object(folder / "config.json")


def _check_architecture(key: str, found: Mapping[str, Any], config: Config) -> None:
    """Raise `ConfigError` for a checkpoint of a role that cannot do there what it is for. found: its config.json."""
    role = key.split(".")[1]
    _check_sees(key, role, found, config)
    _check_trains(key, role, found, config)
    kind = found.get("model_type")
    if config.engine[targets.TARGET] == NATIVE and kind not in NATIVE_TYPES:
        raise ConfigError(
            f"{key}: engine=native cannot run model_type {str(kind)[:40]!r}, only {' and '.join(NATIVE_TYPES)}; use "
            "engine=transformers"
        )


def _learning(config: Config) -> set[str]:
    """The roles whose models learn in any arm."""
    judges = any(arm.train_reward and not config.judge_for(arm).is_oracle for arm in config.arms.values())
    return {"policy", "reward"} if judges else {"policy"}


def _check_trains(key: str, role: str, found: Mapping[str, Any], config: Config) -> None:
    """Raise `ConfigError` for a checkpoint that is to learn, and cannot be trained here. found: its config.json."""
    why = why_untrainable(found) if role in _learning(config) else ""
    if why:
        raise ConfigError(f"{key}: {why}")


def _check_sees(key: str, role: str, found: Mapping[str, Any], config: Config) -> None:
    """Raise `ConfigError` for a checkpoint that is to be shown pictures, and cannot be.

    role: whose pictures it is shown. found: its config.json. vLLM is asked about one that says what it is.
    """
    shown = config.model.images.model_dump().get(role, 0)
    if not shown:
        return
    if not isinstance(found.get("vision_config"), dict):
        raise ConfigError(
            f"{key}: model.images.{role} = {shown}, and this checkpoint reads text alone (its config.json has no "
            "vision_config); use one of Qwen2.5-VL or Qwen3-VL, or 0"
        )
    architectures = found.get("architectures")
    if config.engine[targets.TARGET] in (VLLM, SERVERS) and isinstance(architectures, list) and architectures:
        from rlanything.engines.vllm import support

        try:
            support.check_sight(one_line(str(architectures[0]))[:60])
        except UserError as error:
            raise ConfigError(f"{key}: {error}") from None


def lost_updates(config: Config) -> list[str]:
    """A warning for each model that trains, all of its weights, so slowly that bfloat16 weights would hardly move."""
    learn = config.learn
    return [
        f"{'learn.' + name if name in learn.precisions else 'train'}.precision = {NARROW}: bfloat16 weights round away "
        f"the updates of learn.{name}.lr = {getattr(learn, name).lr:g}, and most of them never move; use bf16-mixed, "
        f"whose weights that train are float32, or LoRA (learn.{name}.lora)"
        for name in ("policy", "reward")
        if name in _learning(config) and name not in learn.lora
        if config.precision(name) == NARROW and getattr(learn, name).lr < LOWEST_NARROW_LR
    ]


def _on_one_device(config: Config) -> list[str]:
    """A warning where several seeds would train at once on an accelerator."""
    train = config.train
    if train.accelerator == "cpu" or train.seeds_at_once == 1:
        return []
    return [
        f"train.workers = {train.workers}: on an accelerator {train.seeds_at_once} seeds train at once on its first "
        "device, each with models and optimizers of its own; `rlanything plan` counts all of them, and train.workers=1 "
        "trains one after the other"
    ]


def _toy_values(config: Config) -> Iterator[str]:
    """Values that are right for embedded models alone."""
    for name in ("policy", "reward"):
        rate = getattr(config.learn, name).lr
        if rate > HIGHEST_LR:
            yield f"learn.{name}.lr = {rate:g}: very high for a real checkpoint; the paper has 1e-06"
    lengths = {
        "rollout.max_tokens": config.rollout.max_tokens,
        "judge.max_tokens": config.judge.max_tokens,
        "adaptation.max_tokens": config.adaptation.max_tokens,
    }
    for key, least in SHORTEST.items():
        if lengths[key] < least:
            yield f"{key} = {lengths[key]}: most replies will be cut off before their answer (at least {least})"
    if config.rollout.decoding == "constrained":
        yield "rollout.decoding = constrained: only commands can be sampled, so the policy cannot think (free)"
    if config.engine[targets.TARGET] == NATIVE:
        yield "engine=native: made for embedded models; it samples on the CPU only (engine=transformers)"


def _unlike(config: Config, root: Path) -> Iterator[str]:
    """Roles that were left at a name on the hub while the policy is a folder."""
    chosen = roles(config)
    if "policy" not in chosen or not is_local(chosen["policy"], root):
        return
    for role, source in chosen.items():
        if not is_local(source, root):
            yield (
                f"model.{role}.path = {source.path}: on the hub, but the policy is the folder {chosen['policy'].path}; "
                "model=local path=FOLDER sets all three"
            )
