"""What the policy reads before each step, by `model.context`.

chat: a conversation that grows. A prompt begins with exactly the token ids of the previous prompt and response.
history: one user turn, written anew for every step. It holds the earlier observations and actions, without the
reasoning and the lists of actions of earlier steps (paper, appendix C).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlanything.core.images.messages import Message
from rlanything.core.types import Observation, Step
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.prompts import Prompts, parts_of, text_of


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt. text: what the one user turn says; empty where the episode is a conversation.

    images: the names of the pictures that it shows, in its order.
    """

    ids: tuple[int, ...] = ()
    text: str = ""
    images: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: ChatModel, message: Message) -> Prompt:
        """A prompt of one user turn."""
        names = tuple(part["image"] for part in parts_of(message) if part["type"] == "image")
        return cls(model.start([message]), text_of(message), names)


def next_prompt(
    model: ChatModel,
    prompts: Prompts,
    first_observation: str,
    steps: Sequence[Step],
    now: Observation,
    first_images: Sequence[str] = (),
) -> Prompt:
    """The prompt of the next step. `first_observation` came before `steps`; `now` is the current observation.

    first_images: the names of the pictures that came with the first observation.
    """
    if not prompts.chats:
        pictures = model.last_pictures(seen_before(first_images, steps))
        past = _past(first_observation, steps)
        return Prompt.of(model, prompts.history_turn(past, now.text, now.actions, pictures))
    if not steps:
        return Prompt(model.start(prompts.opening(now.text, now.actions)))
    last, message = steps[-1], prompts.turn(now.text, now.actions)
    return Prompt(model.extend(last.prompt_ids, last.response_ids, message))


def seen_before(first_images: Sequence[str], steps: Sequence[Step]) -> list[str]:
    """The names of all pictures that were shown up to the end of these steps, in order."""
    return [*first_images, *(name for step in steps for name in step.images)]


def _past(first_observation: str, steps: Sequence[Step]) -> list[tuple[str, str]]:
    """(observation, the action that was taken on it) of every step so far."""
    seen = [first_observation, *(step.observation for step in steps)]
    return [(text, step.action) for text, step in zip(seen, steps, strict=False)]
