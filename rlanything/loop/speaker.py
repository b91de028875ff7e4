"""A model one can talk to: an engine, the chat format of its tokenizer, and what fits into its context."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from rlanything.core.types import Completion, Engine, Request
from rlanything.engines.chat import Chat
from rlanything.loop.prompts import Message


class Speaker:
    """Engine and chat format of one model."""

    def __init__(self, engine: Engine, chat: Chat, max_context: int) -> None:
        self.engine = engine
        self.chat = chat
        self.max_context = max_context
        self.encode_choice = lru_cache(maxsize=65536)(self._encode_choice)

    def start(self, messages: list[Message]) -> tuple[int, ...]:
        """Prompt ids of a fresh conversation, up to where the model speaks."""
        return tuple(self.chat.start(messages))

    def extend(self, prompt: tuple[int, ...], response: tuple[int, ...], message: Message) -> tuple[int, ...]:
        """Prompt ids of the next turn; begins with exactly `prompt + response`."""
        return tuple(self.chat.extend(prompt, response, message))

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Sample every request."""
        return self.engine.generate(requests)

    def decode(self, ids: tuple[int, ...]) -> str:
        """Text of a response."""
        return self.chat.decode(ids)

    def release(self, sessions: Sequence[str]) -> None:
        """Forget the caches of finished conversations."""
        self.engine.release(sessions)

    def _encode_choice(self, text: str) -> tuple[int, ...]:
        return tuple(self.chat.encode_choice(text))
