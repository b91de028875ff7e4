"""Builds what the configuration names: models, prompts, and the task family."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from rlanything import targets
from rlanything.config import Checkpoint, Config
from rlanything.core.errors import ConfigError
from rlanything.core.protocols import Engine, TaskFamily
from rlanything.engines import sources
from rlanything.loop.prompts import Prompts
from rlanything.rewards.kind import kind_of
from rlanything.runs import families
from rlanything.runs.layout import LoraCheckpoint, as_trained

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from rlanything.engines.openai.engine import OpenAIEngine
    from rlanything.engines.placement import Role
    from rlanything.files.images import ImageStore
    from rlanything.loop.chat_model import ChatModel, Sight
    from rlanything.loop.rollout import RolloutWorker


OFFLINE = "; HF_HUB_OFFLINE=1 is set, as `make` does: HF_HUB_OFFLINE=0 lets it be fetched"
REPLIES = Path(".rla/replies")
"""The folder with the replies of endpoints to measurements. Without it they are asked again."""


def one_thread() -> None:
    """Use one thread in this process. On a shared core two busy threads are three times slower than one."""
    import torch

    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    torch.set_num_threads(1)


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
    loaded = Prompts.load(root / chosen, model.action_format, model.verdict_format, model.context)
    loaded.require_places(model.images.model_dump())
    return loaded


def load(
    config: Config, checkpoint: Checkpoint, root: Path, role: Role, name: str
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Model and tokenizer of a checkpoint. The model is on the configured device, in the number format of its role.

    name: `policy`, `reward` or `adapter`, of which the first two may have a precision of their own.

    One that LoRA trained has its frozen weights, and LoRA's beside them, as while it trained.

    Raises `ConfigError`, also when the configured accelerator is missing.
    """
    from rlanything.engines import checkpoint as files
    from rlanything.engines.placement import exact_convolutions, placement

    place = placement(config.train, role, config.precision(name))
    whole = checkpoint.base if isinstance(checkpoint, LoraCheckpoint) else checkpoint
    try:
        model, tokenizer = files.load(
            sources.source(whole, root),
            whole.revision,
            allow_pickle=whole.allow_pickle,
            dtype=place.dtype,
        )
    except files.CheckpointError as error:
        raise ConfigError(str(error)) from None
    exact_convolutions()
    model.to(place.device)  # type: ignore[arg-type]  # transformers' wrapper hides Module.to
    if isinstance(checkpoint, LoraCheckpoint):
        put_lora(config, model, checkpoint, root)
    return model, tokenizer


def check_loads(checkpoint: Checkpoint, root: Path) -> None:
    """Raise `ConfigError` where `load` would, as far as that shows before any weights are read."""
    from rlanything.engines import checkpoint as files

    try:
        files.check(
            sources.source(checkpoint, root), checkpoint.revision, allow_pickle=checkpoint.allow_pickle
        )
    except files.CheckpointError as error:
        raise ConfigError(str(error)) from None


def put_lora(config: Config, model: PreTrainedModel, checkpoint: LoraCheckpoint, root: Path) -> None:
    """Put the trained LoRA's weights beside the frozen ones, which the model has. Raises `ConfigError`."""
    from rlanything.engines.lora.files import load_lora
    from rlanything.engines.lora.injection import inject

    role, settings = checkpoint.role, config.learn.lora[checkpoint.role]
    inject(model, settings, 0, f"learn.{role}.lora")
    load_lora(model, root / checkpoint.lora, settings, checkpoint.base.path)


def fetch_commit(checkpoint: Checkpoint, root: Path) -> None:
    """Let the hub's cache on this machine know the commit of a checkpoint, so that a run can be named after it.

    Only where it does not know it yet, one small file is fetched. Raises `ConfigError` when that fails.
    """
    if sources.is_local(checkpoint, root) or sources.contents(checkpoint, root):
        return
    from huggingface_hub import constants
    from transformers.utils.hub import hf_hub_download

    try:
        hf_hub_download(checkpoint.path, "config.json", revision=checkpoint.revision)
    except Exception as error:  # its HTTP client has errors of its own, which depend on its version
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        hint = OFFLINE if constants.is_offline_mode() else ""
        raise ConfigError(
            f"{checkpoint.path}: neither a folder, nor in the hub's cache, nor can it be fetched ({reason}){hint}"
        ) from None


def endpoint(
    config: Config, role: str, keep: Path | None = None, images: ImageStore | None = None
) -> OpenAIEngine | None:
    """The engine of the endpoint that serves a role; None: the role has a checkpoint.

    The endpoint is asked whether it has the model. keep: the folder for replies that were paid for. images: the
    pictures that it may be shown. Raises `ConfigError`, and `MachineError` when the endpoint does not answer.
    """
    from rlanything.engines.openai.engine import OpenAIEngine

    section = config.endpoints.served.get(role)
    if section is None:
        return None
    engine = OpenAIEngine(section, role, keep, find=None if images is None else images.get)
    engine.check()
    return engine


def served(config: Config, engine: OpenAIEngine, images: ImageStore | None = None) -> ChatModel:
    """The model behind an endpoint, with the chat format of its engine.

    images: where the pictures are. Whoever judges is shown as many as the reward model; the adapter reads text. Raises
    `ConfigError` for pictures without a store.
    """
    from rlanything.config.endpoints import ADAPTER
    from rlanything.engines.openai.text_ids import TextChat
    from rlanything.loop.chat_model import ChatModel, Sight

    last = 0 if engine.name == ADAPTER else config.model.images.reward
    seen = Sight(last, _store("reward", last, images)) if last else None
    return ChatModel(engine, TextChat(), engine.endpoint.context, seen)


def judge(
    config: Config, checkpoint: Checkpoint, root: Path, role: str = "reward", images: ImageStore | None = None
) -> ChatModel:
    """A model that only measures: the endpoint that serves the role where there is one, else the checkpoint.

    images: the pictures of what it judges. Whoever judges is shown as many as the reward model.

    The endpoint's replies are kept for all measurements: every arm asks the same questions about the same panel.
    """
    engine = endpoint(config, role, root / REPLIES / role, images)
    if engine is not None:
        return served(config, engine, images)
    return measured(config, "reward", checkpoint, root, images)[1]


def measured(
    config: Config, role: str, checkpoint: Checkpoint, root: Path, images: ImageStore | None = None
) -> tuple[PreTrainedModel, ChatModel]:
    """A checkpoint that only measures, in the role `policy` or `reward`. The caller closes the chat model.

    images: the pictures that the role is shown. Raises `ConfigError`.
    """
    from rlanything.engines.placement import Role

    checkpoint = as_trained(config, root, checkpoint)
    network, tokenizer = load(config, checkpoint, root, Role.FROZEN, role)
    return network, chat_model(
        config, network, tokenizer, sight(config, role, checkpoint, root, network, images)
    )


def chat_model(
    config: Config,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    seen: Sight | None = None,
) -> ChatModel:
    """The model with the configured engine and with the chat format of its tokenizer. The caller closes it.

    seen: how it is shown pictures; None: it reads text alone.
    Raises `ConfigError` for an engine that cannot be made, or that cannot run this model.
    """
    from rlanything.engines.chat import Chat, declared_ends
    from rlanything.loop.chat_model import ChatModel

    eyes = seen.eyes if seen else None
    more = {} if eyes is None else {"eyes": eyes}
    engine = targets.instantiate(config.engine, "engine", Engine, model=model, tokenizer=tokenizer, **more)
    context = config.context(model.config.get_text_config().max_position_embeddings)
    return ChatModel(engine, Chat(tokenizer, eyes, declared_ends(model.generation_config)), context, seen)


def sight(
    config: Config,
    role: str,
    checkpoint: Checkpoint,
    root: Path,
    model: PreTrainedModel,
    images: ImageStore | None,
) -> Sight | None:
    """How the model of a role (`policy` or `reward`) is shown pictures; None where it is shown none.

    images: where the pictures are. Raises `ConfigError` for a checkpoint that reads text alone.
    """
    last = getattr(config.model.images, role)
    if not last:
        return None
    from rlanything.engines.sight import eyes
    from rlanything.loop.chat_model import Sight

    store = _store(role, last, images)
    try:
        found = eyes.load(sources.source(checkpoint, root), checkpoint.revision, model, store.get)
    except ConfigError as error:
        raise ConfigError(f"model.images.{role} = {last}: {error}") from None
    return Sight(last, store, found)


def _store(role: str, last: int, images: ImageStore | None) -> ImageStore:
    """Where the pictures are. Raises `ConfigError` where there is no such place. last: how many are to be shown."""
    if images is None:
        raise ConfigError(f"model.images.{role} = {last}: what is asked here shows models no pictures")
    return images


@contextmanager
def player(
    config: Config,
    source: Checkpoint,
    root: Path,
    family: TaskFamily,
    prompts: Prompts,
    images: ImageStore | None = None,
) -> Iterator[RolloutWorker]:
    """A policy that only acts, by `config.rollout`.

    images: where the pictures that any model is to be shown are kept; None: they are gone afterwards.

    Raises `ConfigError`, also for a checkpoint that reads text alone and is to be shown pictures.
    """
    from rlanything.files.images import passing
    from rlanything.loop.rollout import RolloutWorker

    with (
        nullcontext(images) if images is not None else passing() as store,
        measured(config, "policy", source, root, store)[1] as policy,
    ):
        kept = store if config.model.images.any else None
        yield RolloutWorker(family, policy, prompts, config.rollout, kept)
