"""Environment adaptation (paper, section 2.4): a language model rewrites tasks that are too easy or too hard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlanything.buffer import TaskBuffer
from rlanything.config import AdaptationConfig
from rlanything.core.protocols import Recognises, TaskFamily
from rlanything.core.returned.answers import shown
from rlanything.core.returned.tasks import unstorable
from rlanything.core.seeds import derive_seed
from rlanything.core.thoughts import after_thought
from rlanything.core.types import Direction, InvalidProposal, Proposal, Task
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.critic import Critic, Criticism
from rlanything.loop.episodes import HERE
from rlanything.loop.metrics import RAISED
from rlanything.loop.prompts import Prompts
from rlanything.loop.reward_model import CriticInput

Wanted = tuple[int, Direction, float, str]
"""A rewrite to ask for: slot, direction, acc(q), the critic's text."""


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
        self.critic = Critic(chat_model, prompts, config)

    def critics(
        self, tasks: Sequence[Task], inputs: Sequence[CriticInput], run_seed: int, iteration: int
    ) -> list[Criticism]:
        """One criticism for each task. The critic uses the adapter's model."""
        return self.critic.criticise(tasks, inputs, run_seed, iteration)

    def propose(
        self,
        wanted: Sequence[Wanted],
        buffer: TaskBuffer,
        run_seed: int,
        iteration: int,
        offered: Sequence[Proposal] = (),
    ) -> list[Proposal]:
        """One proposal per wanted rewrite, from its last attempt. Its task is None when every attempt was invalid.

        offered: proposals of other slots that are not decided yet. No slot is offered a task that another has, or is
        offered.
        """
        result: dict[int, Proposal] = {}
        held = {buffer.head(slot).task_id: slot for slot in buffer.slots}
        held |= {p.task.task_id: p.slot for p in offered if p.task is not None}
        for attempt in range(self.config.attempts):
            open_ = [w for w in wanted if w[0] not in result or result[w[0]].task is None]
            prompts = [self._prompt(buffer.head(slot), way, acc, critic) for slot, way, acc, critic in open_]
            seeds = [
                attempt_seed(run_seed, iteration, buffer.head(slot).task_id, attempt) for slot, *_ in open_
            ]
            limits = (self.config.max_tokens, self.config.temperature)
            replies = self.chat_model.answers(prompts, seeds, *limits)
            for want, prompt, seed, reply in zip(open_, prompts, seeds, replies, strict=True):
                proposal = self._check(want, prompt, seed, reply, buffer, iteration, held)
                if proposal.task is not None:
                    held[proposal.task.task_id] = proposal.slot
                result[want[0]] = proposal
        return [result[slot] for slot, *_ in wanted]

    def _check(
        self,
        want: Wanted,
        prompt: str,
        seed: int,
        reply: str | None,
        buffer: TaskBuffer,
        iteration: int,
        held: Mapping[str, int],
    ) -> Proposal:
        """The proposal that a reply makes. held: the tasks that slots have, or are offered now -> the slot."""
        slot, way, acc, critic = want
        parent = buffer.head(slot)
        task, reason = self._parsed(parent, reply)
        if task is not None and buffer.had(slot, task.task_id):
            task, reason = None, "the slot already had or refused this task"
        elif task is not None and self._had_in_other_words(task, buffer, slot):
            task, reason = None, "the slot already had this task in other words"
        elif task is not None and (other := held.get(task.task_id)) is not None:
            # Draws depend on the task and not on the slot: both slots would have the same rollouts.
            task, reason = None, f"slot {other} has this task, or is offered it now"
        return Proposal(
            slot, way, parent.task_id, acc, critic, prompt, reply or "", seed, iteration, task, reason
        )

    def _had_in_other_words(self, task: Task, buffer: TaskBuffer, slot: int) -> bool:
        """Whether a version of the slot is the same exercise; what was refused is known by its id only."""
        if not isinstance(self.family, Recognises):
            return False
        exercise = self.family.exercise(task.copy())
        had = (version.task.copy() for version in buffer.versions(slot))
        return any(self.family.exercise(former) == exercise for former in had)

    def _parsed(self, parent: Task, reply: str | None) -> tuple[Task | None, str]:
        if reply is None:
            return None, "the request does not fit the adapter model's context"
        answer = after_thought(reply)
        if answer is None:
            return None, "the reply says nothing after its thought, or the thought does not end"
        try:
            task = self._own(self.family.parse(parent.copy(), answer))
            reason = self._objection(task)
        except InvalidProposal as error:
            return None, str(error)
        except HERE:
            raise
        except (Exception, SystemExit) as error:  # one odd reply must not end the run
            return None, f"{RAISED} {type(error).__name__}: {error}"
        return (None, reason) if reason else (task, "")

    def _own(self, task: Task) -> Task:
        """The task without values that the family keeps. Raises `TypeError` for what is no task."""
        if not isinstance(task, Task):
            raise TypeError(f"parse(parent, reply) is {shown(task)}; Task is wanted")
        return task.copy()

    def _objection(self, task: Task) -> str:
        """Why the task must not be tried; '' when it may be."""
        if reason := unstorable(task):
            return f"the environment parsed the reply into a task that no file can hold: {reason}"
        try:
            task.instruction.encode()
        except UnicodeEncodeError:  # an escape in JSON, as a model may write it
            return "the instruction holds half a surrogate pair, which no model can read"
        return self.family.validate(task.copy())

    def _prompt(self, task: Task, way: Direction, acc: float, critic: str) -> str:
        facts = self.family.describe(task.copy())
        return self.prompts.fill(
            "adapter", facts=facts, direction=way.value, accuracy=f"{acc:.0%}", critic=critic
        )
