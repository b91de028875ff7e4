"""Rollouts: all episodes of an iteration advance together, with one batched generation per turn.

What an episode samples depends only on its own seeds, not on the other episodes in the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from rlanything.config import RolloutConfig
from rlanything.core.protocols import Environment, TaskFamily
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Completion, Observation, Request, Status, Step, Task, Trajectory
from rlanything.core.unittests import Prefetches
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.contexts import Prompt, next_prompt
from rlanything.loop.guard import deadline
from rlanything.loop.prompts import Prompts
from rlanything.loop.share import shared


@dataclass(frozen=True, slots=True)
class Assignment:
    """A task to roll out `rollouts` times for a slot. Panels use the task's index as the slot."""

    slot: int
    task: Task
    rollouts: int


@dataclass(frozen=True, slots=True)
class Sampling:
    """How one phase samples: what its seeds derive from, its temperature and its limit of steps."""

    run_seed: int
    phase: str
    iteration: int
    temperature: float
    max_steps: int

    def seed(self, task: Task, rollout: int, step: int) -> int:
        """The seed of one action."""
        return derive_seed(self.run_seed, self.phase, self.iteration, task.task_id, rollout, step)


@dataclass(slots=True)
class _Episode:
    """A running episode. The only mutable object of this module."""

    slot: int
    task: Task
    rollout: int
    environment: Environment
    observation: Observation
    first_observation: str = ""
    prompt: Prompt = field(default_factory=Prompt)
    steps: list[Step] = field(default_factory=list)
    status: Status | None = None
    success: bool = False
    error: str = ""

    def guarded(self, call: Callable[[], None], timeout_s: float) -> None:
        """Call environment code. What it raises becomes this episode's status."""
        try:
            with deadline(timeout_s):
                call()
        except TimeoutError as error:
            self.status, self.error = Status.TIMEOUT, str(error)
        except Exception as error:  # an environment's exception is an error of its episode, not of the run
            self.status, self.error = Status.ENV_ERROR, f"{type(error).__name__}: {error}"


class RolloutWorker:
    """Runs episodes of one family with one policy."""

    def __init__(
        self, family: TaskFamily, policy: ChatModel, prompts: Prompts, config: RolloutConfig
    ) -> None:
        self.family = family
        self.policy = policy
        self.prompts = prompts
        self.config = config

    def roll_out(self, assignments: Sequence[Assignment], sampling: Sampling) -> list[Trajectory]:
        """All episodes of the assignments, in their order. A crashed episode has the status ENV_ERROR or TIMEOUT.

        The processes of a run divide the assignments, not the episodes, because the episodes of a task share a prompt.
        """
        tries: list[list[Trajectory]] = shared(assignments, lambda part: self._roll_out(part, sampling))
        return list(chain.from_iterable(tries))

    def _roll_out(self, assignments: Sequence[Assignment], sampling: Sampling) -> list[list[Trajectory]]:
        """The episodes of each assignment, rolled out in this process."""
        episodes: list[_Episode] = []
        try:
            for assignment in assignments:
                for rollout in range(assignment.rollouts):
                    episodes.append(self._open(assignment, rollout, sampling))
            for turn in range(sampling.max_steps):
                alive = [e for e in episodes if e.status is None]
                if not alive:
                    break
                self._turn(alive, turn, sampling)
        finally:
            self.policy.release([self._session(e) for e in episodes])
            for episode in episodes:
                self._shut(episode)
        ended = iter([self._close(e, sampling) for e in episodes])
        return [list(islice(ended, assignment.rollouts)) for assignment in assignments]

    def _open(self, assignment: Assignment, rollout: int, sampling: Sampling) -> _Episode:
        episode = _Episode(
            assignment.slot, assignment.task, rollout, self.family.environment(), Observation("")
        )
        seed = sampling.seed(episode.task, rollout, -1)

        def reset() -> None:
            episode.observation = episode.environment.reset(episode.task, seed)

        episode.guarded(reset, self.config.timeout_s)
        episode.first_observation = episode.observation.text
        if episode.status is None:
            episode.prompt = self._prompt(episode)
        return episode

    def _turn(self, alive: list[_Episode], turn: int, sampling: Sampling) -> None:
        longest = self.policy.max_context - self.config.max_tokens
        fitting = [e for e in alive if len(e.prompt.ids) <= longest]
        for episode in alive:
            if len(episode.prompt.ids) > longest:
                episode.status, episode.error = Status.TRUNCATED, "the policy's context is full"
        requests = [self._request(e, turn, sampling) for e in fitting]
        completions = self.policy.generate(requests)
        replies = [self.policy.decode(completion.ids) for completion in completions]
        actions = [
            self.prompts.action(reply, e.observation.actions)
            for e, reply in zip(fitting, replies, strict=True)
        ]
        if isinstance(self.family, Prefetches):
            self.family.prefetch([(e.task, action) for e, (action, _) in zip(fitting, actions, strict=True)])
        for episode, completion, reply, chosen in zip(fitting, completions, replies, actions, strict=True):
            self._act(episode, chosen[0])
            if episode.status in (Status.ENV_ERROR, Status.TIMEOUT):
                continue
            episode.steps.append(self._step(episode, completion, reply, chosen))
            if episode.status is None:
                episode.prompt = self._prompt(episode)

    def _prompt(self, episode: _Episode) -> Prompt:
        """What the policy reads next."""
        past = episode.first_observation, episode.steps
        return next_prompt(self.policy, self.prompts, *past, episode.observation)

    def _step(self, episode: _Episode, completion: Completion, reply: str, chosen: tuple[str, bool]) -> Step:
        """The step that was just taken. chosen: the action, and whether it is valid."""
        return Step(
            episode.prompt.ids, completion.ids, completion.logprobs, completion.allowed, *chosen,
            episode.observation.text, episode.prompt.text, "" if self.prompts.chats else reply,
        )  # fmt: skip

    def _request(self, episode: _Episode, turn: int, sampling: Sampling) -> Request:
        constrained = self.config.decoding == "constrained"
        listed = episode.observation.actions if constrained else ()
        choices = tuple(self.policy.encode_choice(self.prompts.reply(a, listed)) for a in listed)
        # A session reuses its cache when a prompt extends the last one. With history, a prompt does not extend the last
        # one. There, the prompts of a task form a group, which shares their common beginning.
        chats = self.prompts.chats
        return Request(
            prompt_ids=episode.prompt.ids,
            seed=sampling.seed(episode.task, episode.rollout, turn),
            max_tokens=self.config.max_tokens,
            temperature=sampling.temperature,
            choices=choices,
            session=self._session(episode) if chats else "",
            group="" if chats else f"{episode.slot}/{episode.task.task_id}",
        )

    def _act(self, episode: _Episode, action: str) -> None:
        def step() -> None:
            result = episode.environment.step(action)
            episode.observation = result.observation
            if result.done:
                episode.status, episode.success = Status.OK, result.success

        episode.guarded(step, self.config.timeout_s)

    def _shut(self, episode: _Episode) -> None:
        """Close the environment. The episode keeps its status and error, even when closing fails."""
        status, error = episode.status or Status.TRUNCATED, episode.error
        episode.guarded(episode.environment.close, self.config.timeout_s)
        episode.status, episode.error = status, error or episode.error

    def _session(self, episode: _Episode) -> str:
        return f"{episode.slot}/{episode.task.task_id}/{episode.rollout}"

    def _close(self, episode: _Episode, sampling: Sampling) -> Trajectory:
        return Trajectory(
            task_id=episode.task.task_id,
            slot=episode.slot,
            rollout=episode.rollout,
            seed=sampling.seed(episode.task, episode.rollout, -1),
            first_observation=episode.first_observation,
            steps=tuple(episode.steps),
            outcome=1 if episode.success else -1,
            status=episode.status or Status.TRUNCATED,
            error=episode.error,
        )
