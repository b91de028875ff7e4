"""Builds what the configuration names: models, prompts, and the task family."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rlanything import targets
from rlanything.config import Checkpoint, Config
from rlanything.core.errors import ConfigError
from rlanything.core.protocols import Engine, TaskFamily
from rlanything.loop.prompts import Prompts
from rlanything.rewards.kind import kind_of
from rlanything.runs import families

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from rlanything.engines.placement import Role
    from rlanything.loop.chat_model import ChatModel


def one_thread() -> None:
    """Use one thread in this process. On a shared core two busy threads are three times slower than one."""
    import torch

    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    torch.set_num_threads(1)


def first_process() -> bool:
    """Whether this process writes files: it is the only one, or rank 0 under torchrun."""
    return int(os.environ.get("RANK", "0")) == 0


def family(config: Config) -> TaskFamily:
    """The task family. Raises `ConfigError`, also when the configured kind of reward model cannot judge its tasks."""
    made = families.family(config)
    kind_of(config).check(config, made)
    return made


def prompts(config: Config, root: Path, folder: str | None = None) -> Prompts:
    """The prompt templates in `folder`; None: in `model.prompts`.

    Raises `ConfigError`, also for a folder outside the project, because DVC could not notice changes there.
    """
    model = config.model
    chosen = folder or model.prompts
    project = Path(os.path.abspath(root))
    if project not in Path(os.path.abspath(root / chosen)).parents:
        raise ConfigError(f"model.prompts = {chosen}: must be a folder in the project, {project}")
    return Prompts.load(root / chosen, model.action_format, model.verdict_format, model.context)


def load(
    config: Config, checkpoint: Checkpoint, root: Path, role: Role
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Model and tokenizer of a checkpoint. The model is on the configured device, in the number format of its role.

    Raises `ConfigError`, also when the configured accelerator is missing.
    """
    from rlanything.engines import checkpoint as files
    from rlanything.engines.placement import placement

    place = placement(config.train, role)
    try:
        model, tokenizer = files.load(
            source(checkpoint, root),
            checkpoint.revision,
            allow_pickle=checkpoint.allow_pickle,
            dtype=place.dtype,
        )
    except files.CheckpointError as error:
        raise ConfigError(str(error)) from None
    model.to(place.device)  # type: ignore[arg-type]  # transformers' wrapper hides Module.to
    return model, tokenizer


def source(checkpoint: Checkpoint, root: Path) -> str:
    """The folder of a checkpoint, or its name on the hub.

    It is a folder if that folder exists, or if the path begins like one (`.`, `/`, `models/`, `runs/`)."""
    folder = root / checkpoint.path
    local = folder.exists() or checkpoint.path.startswith((".", "/", "models/", "runs/"))
    return str(folder) if local else checkpoint.path


def chat_model(config: Config, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> ChatModel:
    """The model with the configured engine and with the chat format of its tokenizer."""
    from rlanything.engines.chat import Chat
    from rlanything.loop.chat_model import ChatModel

    engine = targets.instantiate(config.engine, "engine", Engine, model=model, tokenizer=tokenizer)
    return ChatModel(engine, Chat(tokenizer), model.config.max_position_embeddings)
