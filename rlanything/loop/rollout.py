"""Rollouts: all episodes of an iteration advance together, with one batched generation per turn.

What an episode samples depends only on its own seeds, not on the other episodes in the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from rlanything.config import RolloutConfig
from rlanything.core.seeds import derive_seed
from rlanything.core.types import (
    Completion,
    Environment,
    Observation,
    Request,
    Status,
    Step,
    Task,
    TaskFamily,
    Trajectory,
)
from rlanything.core.unittests import Prefetches
from rlanything.loop.chat_model import ChatModel
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
    prompt: tuple[int, ...] = ()
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
        """All episodes of the assignments, in their order. Crashed ones have the status of a crash.

        The processes of a run divide the assignments, not the episodes: the episodes of a task share its prompt.
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
            messages = self.prompts.opening(episode.observation.text, episode.observation.actions)
            episode.prompt = self.policy.start(messages)
        return episode

    def _turn(self, alive: list[_Episode], turn: int, sampling: Sampling) -> None:
        fitting = [e for e in alive if len(e.prompt) + self.config.max_tokens <= self.policy.max_context]
        for episode in alive:
            if len(episode.prompt) + self.config.max_tokens > self.policy.max_context:
                episode.status, episode.error = Status.TRUNCATED, "the policy's context is full"
        requests = [self._request(e, turn, sampling) for e in fitting]
        completions = self.policy.generate(requests)
        actions = [self._action(e, completion) for e, completion in zip(fitting, completions, strict=True)]
        if isinstance(self.family, Prefetches):
            self.family.prefetch([(e.task, action) for e, (action, _) in zip(fitting, actions, strict=True)])
        for episode, completion, (action, valid) in zip(fitting, completions, actions, strict=True):
            self._act(episode, action)
            if episode.status in (Status.ENV_ERROR, Status.TIMEOUT):
                continue
            step = Step(
                episode.prompt, completion.ids, completion.logprobs, completion.allowed, action, valid,
                episode.observation.text,
            )  # fmt: skip
            episode.steps.append(step)
            if episode.status is None:
                message = self.prompts.turn(episode.observation.text, episode.observation.actions)
                episode.prompt = self.policy.extend(episode.prompt, completion.ids, message)

    def _action(self, episode: _Episode, completion: Completion) -> tuple[str, bool]:
        """(action, valid): what the policy wants to do, and whether it is admissible."""
        return self.prompts.action(self.policy.decode(completion.ids), episode.observation.actions)

    def _request(self, episode: _Episode, turn: int, sampling: Sampling) -> Request:
        constrained = self.config.decoding == "constrained"
        listed = episode.observation.actions if constrained else ()
        choices = tuple(self.policy.encode_choice(self.prompts.reply(a, listed)) for a in listed)
        return Request(
            prompt_ids=episode.prompt,
            seed=sampling.seed(episode.task, episode.rollout, turn),
            max_tokens=self.config.max_tokens,
            temperature=sampling.temperature,
            choices=choices,
            session=self._session(episode),
        )

    def _act(self, episode: _Episode, action: str) -> None:
        def step() -> None:
            result = episode.environment.step(action)
            episode.observation = result.observation
            if result.done:
                episode.status, episode.success = Status.OK, result.success

        episode.guarded(step, self.config.timeout_s)

    def _shut(self, episode: _Episode) -> None:
        """Close the environment. The episode keeps its status, even when closing fails."""
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
