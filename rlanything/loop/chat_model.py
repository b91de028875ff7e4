"""A language model in a conversation: an engine, the chat format of its tokenizer, and the size of its context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Self

from rlanything.core.errors import MachineError
from rlanything.core.images.messages import Message, Part
from rlanything.core.protocols import Engine, LateStart, Renames
from rlanything.core.timing import phase
from rlanything.core.types import Completion, Request
from rlanything.engines.chat import Chat
from rlanything.engines.openai.text_ids import TextChat
from rlanything.files.images import ImageStore
from rlanything.loop.share import shared

if TYPE_CHECKING:
    from rlanything.engines.sight.eyes import Eyes


@dataclass(frozen=True)
class Sight:
    """How a model is shown pictures. last: how many, the latest ones. images: where they are.

    eyes: of a model that is loaded; None: an endpoint is sent them as they are.
    """

    last: int
    images: ImageStore
    eyes: Eyes | None = None

    def parts(self, seen: Sequence[str]) -> list[Part]:
        """See `ChatModel.last_pictures`. Raises `FileError` for a picture that is missing."""
        sizes = [(name, *self.images.size(name)) for name in seen[-self.last :]]
        return [
            {"type": "image", "image": name, "width": width, "height": height}
            for name, width, height in sizes
        ]


class ChatModel:
    """Engine and chat format of one model. Whoever makes one closes it: by `with`, or by `close`.

    sight: how it is shown pictures; None: it reads text alone.
    """

    def __init__(
        self, engine: Engine, chat: Chat | TextChat, max_context: int, sight: Sight | None = None
    ) -> None:
        self.sight = sight
        self.engine = engine
        self.chat = chat
        self.max_context = max_context
        self.version = 0
        """Of the weights that sample, as `sync` has named them."""
        self.encode_choice = lru_cache(maxsize=65536)(self._encode_choice)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()

    def start(self, messages: list[Message]) -> tuple[int, ...]:
        """Prompt ids of a new conversation, up to the model's turn."""
        return tuple(self.chat.start(messages))

    def extend(self, prompt: tuple[int, ...], response: tuple[int, ...], message: Message) -> tuple[int, ...]:
        """Prompt ids of the next turn. They begin with exactly `prompt + response`."""
        return tuple(self.chat.extend(prompt, response, message))

    def sync(self, version: int, *, trained: bool = True) -> None:
        """Sample from the current weights from now on, and call them `version`.

        trained: whether they may be others than before. Otherwise an engine with a copy of them keeps it.
        """
        if not trained and isinstance(self.engine, Renames):
            self.engine.rename(version)
        else:
            self.engine.sync(version)
        self.version = version

    def ensure_started(self) -> None:
        """Have weights of its own from now on, so that another thread can sample while the model is trained."""
        if isinstance(self.engine, LateStart):
            self.engine.ensure_started()

    def last_pictures(self, seen: Sequence[str]) -> list[Part]:
        """The last of the pictures that were seen, by name, as parts of a message: as many as the model is shown."""
        return [] if self.sight is None else self.sight.parts(seen)

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Sample every request. Raises `MachineError` when other weights than those of the last `sync` sampled one.

        So all turns of an episode, and all votes on it, are of one version.
        """
        with phase("generate"):
            completions = self.engine.generate(requests)
        others = sorted({found.version for found in completions} - {self.version})
        if others:
            raise MachineError(
                f"the engine sampled with weights of version {', '.join(map(str, others))}, and those of version "
                f"{self.version} were asked for: log-probs of mixed weights cannot train. What is published stays, and "
                "the same command goes on from there"
            )
        return completions

    def fits(self, text: str, max_tokens: int) -> bool:
        """Whether a conversation that opens with `text`, and a reply of `max_tokens`, fit the context."""
        return self._room(self._question(text), max_tokens)

    def answers(
        self, texts: Sequence[str], seeds: Sequence[int], max_tokens: int, temperature: float
    ) -> list[str | None]:
        """One reply to each text; None where the text does not fit the context.

        The processes of a run divide the texts among them.
        """
        prompts = [self._question(text) for text in texts]
        fit = [self._room(prompt, max_tokens) for prompt in prompts]
        requests = [
            Request(prompt, seed, max_tokens, temperature)
            for prompt, seed, ok in zip(prompts, seeds, fit, strict=True)
            if ok
        ]
        replies = iter(shared(requests, self.generate))
        return [self.decode(next(replies).ids) if ok else None for ok in fit]

    def decode(self, ids: tuple[int, ...]) -> str:
        """Text of a response, with its thought and the tags around it. `core.thoughts` finds the answer in it."""
        return self.chat.decode(ids)

    def release(self, sessions: Sequence[str]) -> None:
        """Free the caches of finished conversations."""
        self.engine.release(sessions)

    def _question(self, text: str) -> tuple[int, ...]:
        return self.start([{"role": "user", "content": text}])

    def _room(self, prompt: tuple[int, ...], max_tokens: int) -> bool:
        return len(prompt) + max_tokens <= self.max_context

    def _encode_choice(self, text: str) -> tuple[int, ...]:
        return tuple(self.chat.encode_choice(text))
