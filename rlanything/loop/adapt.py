"""Environment adaptation (paper, section 2.4): a language model rewrites tasks that are too easy or too hard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rlanything.buffer import TaskBuffer
from rlanything.config import AdaptationConfig
from rlanything.core.protocols import Recognises, TaskFamily
from rlanything.core.returned.answers import require
from rlanything.core.returned.tasks import unstorable
from rlanything.core.seeds import derive_seed
from rlanything.core.thoughts import after_thought
from rlanything.core.types import Direction, InvalidProposal, Proposal, Task
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.critic import Critic, Criticism
from rlanything.loop.episodes import HERE, deadline
from rlanything.loop.metrics import RAISED
from rlanything.loop.prompts import Prompts
from rlanything.loop.reward_model import CriticInput

Wanted = tuple[int, Direction, float, str]
"""A rewrite to ask for: slot, direction, acc(q), the critic's text."""


def attempt_seed(run_seed: int, iteration: int, task_id: str, attempt: int) -> int:
    """The seed of an attempt to rewrite the task, counted from 0."""
    return derive_seed(run_seed, "adapt", iteration, task_id, attempt)


class Adapter:
    """Asks one language model for rewritten tasks, and checks them before they are rolled out.

    timeout_s: longest time of each call of the family's code, in seconds.
    """

    def __init__(
        self,
        family: TaskFamily,
        chat_model: ChatModel,
        prompts: Prompts,
        config: AdaptationConfig,
        timeout_s: float,
    ) -> None:
        self.family = family
        self.chat_model = chat_model
        self.prompts = prompts
        self.config = config
        self.timeout_s = timeout_s
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

        It is also None where the family cannot describe the slot's task. No model is asked about that slot.

        offered: proposals of other slots that are not decided yet. No slot is offered a task that another has, or is
        offered.
        """
        result: dict[int, Proposal] = {}
        prompts: dict[int, str] = {}
        for want in wanted:
            parent = buffer.head(want[0])
            try:
                prompts[want[0]] = self._prompt(parent, *want[1:])
            except InvalidProposal as error:  # there is nothing to ask the model
                seed = attempt_seed(run_seed, iteration, parent.task_id, 0)
                result[want[0]] = _proposal(want, parent, "", "", seed, iteration, None, str(error))
        held = {buffer.head(slot).task_id: slot for slot in buffer.slots}
        held |= {p.task.task_id: p.slot for p in offered if p.task is not None}
        open_ = [want for want in wanted if want[0] in prompts]
        for attempt in range(self.config.attempts):
            seeds = [
                attempt_seed(run_seed, iteration, buffer.head(slot).task_id, attempt) for slot, *_ in open_
            ]
            limits = (self.config.max_tokens, self.config.temperature)
            replies = self.chat_model.answers([prompts[slot] for slot, *_ in open_], seeds, *limits)
            for want, seed, reply in zip(open_, seeds, replies, strict=True):
                proposal = self._check(want, prompts[want[0]], seed, reply, buffer, iteration, held)
                if proposal.task is not None:
                    held[proposal.task.task_id] = proposal.slot
                result[want[0]] = proposal
            open_ = [want for want in open_ if result[want[0]].task is None]
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
        parent = buffer.head(want[0])
        task, reason = None, ""
        try:
            parsed = self._parsed(parent, reply)
            self._require_new(parsed, want[0], buffer, held)
            task = parsed
        except InvalidProposal as error:
            reason = str(error)
        return _proposal(want, parent, prompt, reply or "", seed, iteration, task, reason)

    def _require_new(self, task: Task, slot: int, buffer: TaskBuffer, held: Mapping[str, int]) -> None:
        """Raise `InvalidProposal` for a task that the slot had or refused, or that another slot has."""
        if buffer.had(slot, task.task_id):
            raise InvalidProposal("the slot already had or refused this task")
        if self._had_in_other_words(task, buffer, slot):
            raise InvalidProposal("the slot already had this task in other words")
        if (other := held.get(task.task_id)) is not None:
            # Draws depend on the task and not on the slot: both slots would have the same rollouts.
            raise InvalidProposal(f"slot {other} has this task, or is offered it now")

    def _had_in_other_words(self, task: Task, buffer: TaskBuffer, slot: int) -> bool:
        """Whether a version of the slot is the same exercise; what was refused is known by its id only."""
        family = self.family
        if not isinstance(family, Recognises):
            return False
        with invalid_where_it_raises("exercise", self.timeout_s):
            exercise = family.exercise(task.copy())
            had = (version.task.copy() for version in buffer.versions(slot))
            return any(family.exercise(former) == exercise for former in had)

    def _parsed(self, parent: Task, reply: str | None) -> Task:
        """The task in a reply. Raises `InvalidProposal` for one that must not be tried."""
        if reply is None:
            raise InvalidProposal("the request does not fit the adapter model's context")
        answer = after_thought(reply)
        if answer is None:
            raise InvalidProposal("the reply says nothing after its thought, or the thought does not end")
        with invalid_where_it_raises("parse", self.timeout_s):
            task = self._own(self.family.parse(parent.copy(), answer))
            _require_readable(task)
        with invalid_where_it_raises("validate", self.timeout_s):
            reason = self.family.validate(task.copy())
        if reason:
            raise InvalidProposal(reason)
        return task

    def _own(self, task: Task) -> Task:
        """The task without values that the family keeps. Raises `TypeError` for what is no task."""
        require(task, Task, "parse(parent, reply)")
        return task.copy()

    def _prompt(self, task: Task, way: Direction, acc: float, critic: str) -> str:
        """What the model is asked. Raises `InvalidProposal` where the family cannot describe the task."""
        facts = described(self.family, task, self.timeout_s)
        return self.prompts.fill(
            "adapter", facts=facts, direction=way.value, accuracy=f"{acc:.0%}", critic=critic
        )


def described(family: TaskFamily, task: Task, timeout_s: float) -> str:
    """What the family says about a task to the model that rewrites it. Raises `InvalidProposal` where it cannot."""
    with invalid_where_it_raises("describe", timeout_s):
        facts = family.describe(task.copy())
        require(facts, str, "describe(task)")
        facts.encode()  # no tokenizer has an id for half a surrogate pair
    return facts


@contextmanager
def invalid_where_it_raises(method: str, timeout_s: float) -> Iterator[None]:
    """Raise `InvalidProposal` for what a method of the family raises, as one task or reply must not end the run.

    Also where it takes longer than `timeout_s`. `HERE` is raised all the same.
    """
    try:
        with deadline(timeout_s):
            yield
    except (InvalidProposal, *HERE):
        raise
    except (Exception, SystemExit) as error:
        raise InvalidProposal(f"{RAISED} in `{method}`: {type(error).__name__}: {error}") from error


def _require_readable(task: Task) -> None:
    """Raise `InvalidProposal` for a task that no file can hold or no model can read."""
    if reason := unstorable(task):
        raise InvalidProposal(f"the environment parsed the reply into a task that no file can hold: {reason}")
    try:
        task.instruction.encode()
    except UnicodeEncodeError:  # an escape in JSON, as a model may write it
        raise InvalidProposal(
            "the instruction holds half a surrogate pair, which no model can read"
        ) from None


def _proposal(
    want: Wanted,
    parent: Task,
    prompt: str,
    reply: str,
    seed: int,
    iteration: int,
    task: Task | None,
    reason: str,
) -> Proposal:
    slot, way, acc, critic = want
    return Proposal(slot, way, parent.task_id, acc, critic, prompt, reply, seed, iteration, task, reason)
