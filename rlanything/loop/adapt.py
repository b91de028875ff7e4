"""Environment adaptation (paper, section 3): a language model rewrites tasks that are too easy or too hard."""

from __future__ import annotations

from collections.abc import Sequence

from rlanything.buffer import TaskBuffer
from rlanything.config import AdaptationConfig
from rlanything.core.seeds import derive_seed
from rlanything.core.thoughts import after_thought
from rlanything.core.types import (
    Direction,
    InvalidProposal,
    Proposal,
    Request,
    Task,
    TaskFamily,
)
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.prompts import Prompts
from rlanything.loop.reward_model import CriticInput
from rlanything.loop.share import shared

Wanted = tuple[int, Direction, float, str]
"""A rewrite to ask for: slot, direction, acc(q), critic summary."""


def attempt_seed(run_seed: int, iteration: int, task_id: str, attempt: int) -> int:
    """The seed of an attempt to rewrite the task, counted from 0."""
    return derive_seed(run_seed, "adapt", iteration, task_id, attempt)


class Adapter:
    """Asks one language model for rewritten tasks, and checks them before they are rolled out."""

    def __init__(
        self, family: TaskFamily, chat_model: ChatModel, prompts: Prompts, config: AdaptationConfig
    ) -> None:
        self.family = family
        self.chat_model = chat_model
        self.prompts = prompts
        self.config = config

    def critics(
        self, tasks: Sequence[Task], inputs: Sequence[CriticInput], run_seed: int, iteration: int
    ) -> list[str]:
        """One critic per task: the extract, or a summary that the adapter model writes.

        The extract is used, too, where the text to summarise does not fit the adapter model's context, and where the
        reply says nothing after its thought.
        """
        if self.config.critic == "extractive":
            return [given.extract for given in inputs]
        asked = [
            self.prompts.fill("critic", task=task.instruction, steps=given.listing)
            for task, given in zip(tasks, inputs, strict=True)
        ]
        seeds = [derive_seed(run_seed, "critic", iteration, task.task_id) for task in tasks]
        replies = self._ask(asked, seeds)
        return [
            (reply and after_thought(reply)) or given.extract
            for given, reply in zip(inputs, replies, strict=True)
        ]

    def propose(
        self,
        wanted: Sequence[Wanted],
        buffer: TaskBuffer,
        run_seed: int,
        iteration: int,
    ) -> list[Proposal]:
        """One proposal per wanted rewrite. Its task is None when every attempt was invalid."""
        result: dict[int, Proposal] = {}
        for attempt in range(self.config.attempts):
            open_ = [w for w in wanted if w[0] not in result or result[w[0]].task is None]
            prompts = [self._prompt(buffer.head(slot), way, acc, critic) for slot, way, acc, critic in open_]
            seeds = [
                attempt_seed(run_seed, iteration, buffer.head(slot).task_id, attempt) for slot, *_ in open_
            ]
            for want, prompt, seed, reply in zip(
                open_, prompts, seeds, self._ask(prompts, seeds), strict=True
            ):
                result[want[0]] = self._check(want, prompt, seed, reply, buffer, iteration)
        return [result[slot] for slot, *_ in wanted]

    def _check(
        self,
        want: Wanted,
        prompt: str,
        seed: int,
        reply: str | None,
        buffer: TaskBuffer,
        iteration: int,
    ) -> Proposal:
        slot, way, acc, critic = want
        parent = buffer.head(slot)
        task, reason = self._parsed(parent, reply)
        if task is not None and buffer.had(slot, task.task_id):
            task, reason = None, "the slot already had or refused this task"
        return Proposal(
            slot, way, parent.task_id, acc, critic, prompt, reply or "", seed, iteration, task, reason
        )

    def _parsed(self, parent: Task, reply: str | None) -> tuple[Task | None, str]:
        if reply is None:
            return None, "the request does not fit the adapter model's context"
        answer = after_thought(reply)
        if answer is None:
            return None, "the reply says nothing after its thought, or the thought does not end"
        try:
            task = self.family.parse(parent, answer)
        except InvalidProposal as error:
            return None, str(error)
        reason = self.family.validate(task)
        return (None, reason) if reason else (task, "")

    def _prompt(self, task: Task, way: Direction, acc: float, critic: str) -> str:
        facts = self.family.describe(task)
        return self.prompts.fill(
            "adapter", facts=facts, direction=way.value, accuracy=f"{acc:.0%}", critic=critic
        )

    def _ask(self, texts: Sequence[str], seeds: Sequence[int]) -> list[str | None]:
        """The replies, sampled by all processes of a run together; None where a text does not fit the context."""
        prompts = [self.chat_model.start([{"role": "user", "content": text}]) for text in texts]
        limits = (self.config.max_tokens, self.config.temperature)
        fits = [len(p) + self.config.max_tokens <= self.chat_model.max_context for p in prompts]
        requests = [Request(p, s, *limits) for p, s, ok in zip(prompts, seeds, fits, strict=True) if ok]
        replies = iter(shared(requests, self.chat_model.generate))
        return [self.chat_model.decode(next(replies).ids) if ok else None for ok in fits]
