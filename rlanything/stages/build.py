"""Putting the parts together from the configuration: family, prompts, and models one can talk to."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlanything.config import Checkpoint, Config, ConfigError, unknown
from rlanything.core.types import Task, TaskFamily, Teacher
from rlanything.core.unittests import Examiner
from rlanything.loop.prompts import Prompts

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from rlanything.loop.speaker import Speaker


NO_ARGUMENTS = ("_target_", "_code_")
"""Keys of a section that are not for the constructor: the class, and the folder of an environment's code."""


def one_thread() -> None:
    """One thread per process: on a contended core two busy threads are three times slower than one."""
    import torch

    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    torch.set_num_threads(1)


def first_process() -> bool:
    """Whether this process writes: the only one, or rank 0 of those that torchrun started."""
    return int(os.environ.get("RANK", "0")) == 0


def instantiate(section: dict[str, Any], name: str, **given: Any) -> Any:
    """The object that `section._target_` names, with the section's keys as arguments.

    Raises `ConfigError` for a class that cannot be found, an unknown key (nearest name offered) or a refused value.
    """
    from hydra.utils import get_class

    try:
        cls = get_class(section["_target_"])
    except Exception as error:  # Hydra wraps whatever the import raises
        raise ConfigError(f"{name}._target_ = {section['_target_']!r}: {error}") from None
    arguments = {key: value for key, value in section.items() if key not in NO_ARGUMENTS}
    known = [p for p in inspect.signature(cls).parameters if p not in given]
    for key in arguments:
        if key not in known:
            raise ConfigError(f"{name}.{key}: {unknown(key, known)}")
    try:
        return cls(**arguments, **given)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name}: {error}") from None


def family(config: Config) -> TaskFamily:
    """The task family of the configuration."""
    made: TaskFamily = instantiate(config.env, "env")
    return made


def teacher(made: TaskFamily) -> Teacher:
    """The family as the teacher of embedded models and labeller of the panel. Raises `ConfigError` if it is none."""
    if not isinstance(made, Teacher):
        raise ConfigError(
            f"env: {type(made).__name__} has no teacher (demonstrate, label_steps, explain, rewrite), which embedded "
            "models and the reward panel need; use real checkpoints (model=qwen2.5) and a labelled panel"
        )
    return made


def examiner(made: TaskFamily) -> Examiner:
    """The family as one that runs programs. Raises `ConfigError` if it does not."""
    if not isinstance(made, Examiner):
        raise ConfigError(
            f"judge.writes = 'tests': {type(made).__name__} runs no programs (examine, criticism, proven); "
            "its reward model writes votes"
        )
    return made


def make(made: TaskFamily, split: str, count: int, seed: int) -> list[Task]:
    """Tasks of the family. Raises `ConfigError` when it cannot make as many as the configuration asks for."""
    try:
        return made.make(split, count, seed)
    except ValueError as error:
        raise ConfigError(f"env: {count} tasks of split {split} cannot be made: {error}") from None


def prompts(config: Config, root: Path) -> Prompts:
    """The prompt templates."""
    model = config.model
    return Prompts.load(root / model.prompts, model.action_format, model.verdict_format)


def load(checkpoint: Checkpoint, root: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Model and tokenizer of a checkpoint: a folder under the root if there is one, otherwise a hub name."""
    from rlanything.engines import checkpoint as files

    folder = root / checkpoint.path
    local = folder.exists() or checkpoint.path.startswith((".", "/", "models/", "runs/"))
    try:
        return files.load(str(folder) if local else checkpoint.path, checkpoint.revision)
    except files.CheckpointError as error:
        raise ConfigError(str(error)) from None


def speaker(config: Config, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Speaker:
    """A model with the configured engine and its own chat format."""
    from rlanything.engines.chat import Chat
    from rlanything.loop.speaker import Speaker

    engine = instantiate(config.engine, "engine", model=model, tokenizer=tokenizer)
    return Speaker(engine, Chat(tokenizer), model.config.max_position_embeddings)
