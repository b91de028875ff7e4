"""The models of a run without their weights: chat format, size of the context, and how pictures are shown."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import AutoConfig, AutoTokenizer, GenerationConfig

from rlanything.config import Checkpoint, Config
from rlanything.config.endpoints import ADAPTER
from rlanything.core.errors import ConfigError
from rlanything.core.protocols import Engine
from rlanything.engines import sources
from rlanything.engines.chat import Chat, declared_ends
from rlanything.engines.openai import text_ids
from rlanything.engines.openai.text_ids import TextChat
from rlanything.engines.untrusted_load import NO_CODE, auto_class, why_unusable
from rlanything.files.images import ImageStore
from rlanything.loop.chat_model import ChatModel, Sight
from rlanything.loop.record import NotStored
from rlanything.repro.played.engine import Vocabulary
from rlanything.runs import build


def still(
    config: Config, role: str, checkpoint: Checkpoint, root: Path, engine: Engine, images: ImageStore
) -> Silent:
    """The model of a role with another engine. Weights are neither read nor made.

    images: the pictures that it is shown. An adapter reads text alone, and its replies are recorded as text. Raises
    `ConfigError` for a checkpoint whose tokenizer or configuration cannot be read.
    """
    made, last = (Told, 0) if role == ADAPTER else (Silent, getattr(config.model.images, role))
    section = config.endpoints.served.get(role)
    if section is not None:
        return made(engine, TextChat(), section.context, Sight(last, images) if last else None)
    place, revision = sources.source(checkpoint, root), checkpoint.revision
    if problem := why_unusable(place, revision):
        raise ConfigError(f"model.{role}: {place}: {problem}")
    tokenizer = AutoTokenizer.from_pretrained(place, revision=revision, **NO_CODE)
    settings = AutoConfig.from_pretrained(place, revision=revision, **NO_CODE)
    seen = None
    if last:
        with torch.device("meta"):
            network = auto_class(settings).from_config(settings, **NO_CODE)
        seen = build.sight(config, role, checkpoint, root, network, images)
    text = settings.get_text_config()
    chat = Chat(tokenizer, seen.eyes if seen else None, _ends(place, revision))
    model = made(engine, chat, config.context(text.max_position_embeddings), seen)
    model.vocabulary = Vocabulary(text.vocab_size, frozenset(chat.stop_ids))
    return model


def _ends(place: str, revision: str | None) -> tuple[int, ...]:
    """See `declared_ends`. A checkpoint need not have the file."""
    try:
        return declared_ends(GenerationConfig.from_pretrained(place, revision=revision or "main"))
    except OSError:
        return ()


class Silent(ChatModel):
    """A model whose engine gives recorded ids."""

    vocabulary: Vocabulary | None = None
    """Its ids; None: its replies are text, from an endpoint."""

    def decode(self, ids: tuple[int, ...]) -> str:
        """Text of a recorded response. Raises `NotStored` for ids that its tokenizer cannot have given."""
        try:
            return super().decode(ids)
        except (OverflowError, TypeError, ValueError) as error:  # of tokenizers, and of `text_ids`
            shown = ", ".join(map(str, ids[:8]))
            raise NotStored(
                f"a response with the ids {shown}, ...: no tokens of this model ({error})"
            ) from None


class Told(Silent):
    """A model whose responses are recorded as text: their ids are those of `text_ids`, and its prompts are its own."""

    def decode(self, ids: tuple[int, ...]) -> str:
        """The recorded text, unchanged."""
        return text_ids.decode(ids)
