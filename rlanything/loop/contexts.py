"""What the policy reads before each step, by `model.context`.

chat: a conversation that grows. A prompt begins with exactly the token ids of the previous prompt and response.
history: one user turn, written anew for every step. It holds the earlier observations and actions, without the
reasoning and the lists of actions of earlier steps (paper, appendix C).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlanything.core.types import Observation, Step
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.prompts import Prompts


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt of the policy. text: what the one user turn says; empty where the episode is a conversation."""

    ids: tuple[int, ...] = ()
    text: str = ""


def next_prompt(
    model: ChatModel, prompts: Prompts, first_observation: str, steps: Sequence[Step], now: Observation
) -> Prompt:
    """The prompt of the next step. `first_observation` came before `steps`; `now` is the current observation."""
    if not prompts.chats:
        message = prompts.history_turn(_past(first_observation, steps), now.text, now.actions)
        return Prompt(model.start([message]), message["content"])
    if not steps:
        return Prompt(model.start(prompts.opening(now.text, now.actions)))
    last, message = steps[-1], prompts.turn(now.text, now.actions)
    return Prompt(model.extend(last.prompt_ids, last.response_ids, message))


def _past(first_observation: str, steps: Sequence[Step]) -> list[tuple[str, str]]:
    """(observation, the action that was taken on it) of every step so far."""
    seen = [first_observation, *(step.observation for step in steps)]
    return [(text, step.action) for text, step in zip(seen, steps, strict=False)]
