"""A language model in a conversation: an engine, the chat format of its tokenizer, and the size of its context."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Self

from rlanything.core.protocols import Engine
from rlanything.core.timing import phase
from rlanything.core.types import Completion, Request
from rlanything.engines.chat import Chat
from rlanything.engines.openai.text_ids import TextChat
from rlanything.loop.prompts import Message
from rlanything.loop.share import shared


class ChatModel:
    """Engine and chat format of one model. Whoever makes one closes it: by `with`, or by `close`."""

    def __init__(self, engine: Engine, chat: Chat | TextChat, max_context: int) -> None:
        self.engine = engine
        self.chat = chat
        self.max_context = max_context
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

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Sample every request."""
        with phase("generate"):
            return self.engine.generate(requests)

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
