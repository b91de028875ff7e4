"""Environment adaptation (paper, section 3): who is asked to change which task, and when the change is accepted."""

from __future__ import annotations

from collections.abc import Sequence

from rlanything.buffer import TaskBuffer
from rlanything.config import AdaptationConfig
from rlanything.core.seeds import derive_seed
from rlanything.core.types import (
    Direction,
    InvalidProposal,
    Proposal,
    Request,
    Task,
    TaskFamily,
)
from rlanything.loop.critic import Remarks
from rlanything.loop.prompts import Prompts
from rlanything.loop.share import shared
from rlanything.loop.speaker import Speaker

Wanted = tuple[int, Direction, float, str]
"""A rewrite to ask for: slot, direction, acc(q), critic summary."""


def direction(accuracy: float, config: AdaptationConfig) -> Direction | None:
    """Alg. 1: harder above alpha_high, easier below alpha_low, otherwise the task stays."""
    if accuracy > config.alpha_high:
        return Direction.HARDER
    if accuracy < config.alpha_low:
        return Direction.EASIER
    return None


def accepts(way: Direction, before: float, after: float, config: AdaptationConfig) -> bool:
    """Whether q' replaces q: harder alpha_low < acc(q') < acc(q); easier acc(q) < acc(q') < alpha_high.

    `strict` is the paper's bounds; `inclusive` (reference code) lets acc(q') touch alpha_low or alpha_high;
    `paired` is strict with acc(q) measured by the same policy in the same iteration. acc(q') > 0 always.
    """
    if after <= 0.0:
        return False
    inclusive = config.acceptance == "inclusive"
    if way is Direction.HARDER:
        inside = after >= config.alpha_low if inclusive else after > config.alpha_low
        return inside and after < before
    inside = after <= config.alpha_high if inclusive else after < config.alpha_high
    return before < after and inside


class Adapter:
    """Asks one language model for rewritten tasks, and checks what it writes before a rollout is spent."""

    def __init__(
        self, family: TaskFamily, speaker: Speaker, prompts: Prompts, config: AdaptationConfig
    ) -> None:
        self.family = family
        self.speaker = speaker
        self.prompts = prompts
        self.config = config

    def critics(
        self, tasks: Sequence[Task], remarks: Sequence[Remarks], run_seed: int, iteration: int
    ) -> list[str]:
        """One critic per task: as it was extracted, or a summary that the adapter model writes.

        Where what is to be summarised does not fit the adapter model's context, the extract stands for it.
        """
        if self.config.critic == "extractive":
            return [remark.extracted for remark in remarks]
        asked = [
            self.prompts.fill("critic", task=task.instruction, steps=remark.listed)
            for task, remark in zip(tasks, remarks, strict=True)
        ]
        seeds = [derive_seed(run_seed, "critic", iteration, task.task_id) for task in tasks]
        replies = self._ask(asked, seeds)
        return [r.extracted if reply is None else reply for r, reply in zip(remarks, replies, strict=True)]

    def propose(
        self,
        wanted: Sequence[Wanted],
        buffer: TaskBuffer,
        run_seed: int,
        iteration: int,
    ) -> list[Proposal]:
        """One proposal per wanted (slot, direction, accuracy, critic); `task` None: every attempt was invalid."""
        result: dict[int, Proposal] = {}
        for attempt in range(self.config.attempts):
            open_ = [w for w in wanted if w[0] not in result or result[w[0]].task is None]
            prompts = [self._prompt(buffer.head(slot), way, acc, critic) for slot, way, acc, critic in open_]
            seeds = [
                derive_seed(run_seed, "adapt", iteration, buffer.head(slot).task_id, attempt)
                for slot, *_ in open_
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
        try:
            task = self.family.parse(parent, reply)
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
        prompts = [self.speaker.start([{"role": "user", "content": text}]) for text in texts]
        limits = (self.config.max_tokens, self.config.temperature)
        fits = [len(p) + self.config.max_tokens <= self.speaker.max_context for p in prompts]
        requests = [Request(p, s, *limits) for p, s, ok in zip(prompts, seeds, fits, strict=True) if ok]
        replies = iter(shared(requests, self.speaker.generate))
        return [self.speaker.decode(next(replies).ids) if ok else None for ok in fits]
