"""Rollouts: all episodes of an iteration advance together, with one batched generation per turn.

What an episode samples depends only on its own seeds, not on the other episodes in the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from rlanything.config import RolloutConfig
from rlanything.core.protocols import Limited, TaskFamily
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Completion, Observation, Request, Status, Step, Task, Trajectory
from rlanything.files.images import ImageStore
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.contexts import Prompt, next_prompt
from rlanything.loop.episodes import Host, Move, Played
from rlanything.loop.group import CONTEXT_FULL
from rlanything.loop.prompts import Prompts
from rlanything.loop.share import host_of, shared

NO_ACTIONS = (
    "the environment lists no actions, and rollout.decoding = constrained samples among them; Observation.actions may "
    "be empty where decoding is free"
)


@dataclass(frozen=True, slots=True)
class Assignment:
    """A task to roll out `rollouts` times for a slot. Panels use the task's index as the slot."""

    slot: int
    task: Task
    rollouts: int


@dataclass(frozen=True, slots=True)
class Sampling:
    """How one phase samples: what its seeds derive from, its temperature and its limit of steps.

    versioned: whether its episodes name the version of the weights that sampled them.
    """

    run_seed: int
    phase: str
    iteration: int
    temperature: float
    max_steps: int
    versioned: bool = False

    def seed(self, task: Task, rollout: int, step: int) -> int:
        """The seed of one action."""
        return derive_seed(self.run_seed, self.phase, self.iteration, task.task_id, rollout, step)


@dataclass(slots=True)
class _Episode:
    """A running episode. The only mutable object of this module."""

    slot: int
    task: Task
    rollout: int
    seed: int
    observation: Observation = field(default_factory=lambda: Observation(""))
    first_observation: str = ""
    first_images: tuple[str, ...] = ()
    prompt: Prompt = field(default_factory=Prompt)
    steps: list[Step] = field(default_factory=list)
    status: Status | None = None
    success: bool = False
    error: str = ""

    @property
    def name(self) -> str:
        """Its name among the episodes that are rolled out together, and of its session."""
        return f"{self.slot}/{self.task.task_id}/{self.rollout}"

    def move(self, timeout_s: float, *further: str, last: bool = False) -> Move:
        """Its actions so far, and a further one. last: no more may follow."""
        actions = (*(step.action for step in self.steps), *further)
        seen = self.observation
        return Move(self.name, self.task, self.seed, actions, seen.text, timeout_s, seen.image_names, last)

    def take(self, played: Played) -> None:
        """Take over the environment's answer."""
        self.observation, self.status = played.observation, played.status
        self.success, self.error = played.success, played.error


class RolloutWorker:
    """Runs episodes of one family with one policy.

    images: where the pictures that environments show are kept. None: they are not kept, and no step names them.
    """

    def __init__(
        self,
        family: TaskFamily,
        policy: ChatModel,
        prompts: Prompts,
        config: RolloutConfig,
        images: ImageStore | None = None,
    ) -> None:
        self.images = images
        self.family = family
        self.policy = policy
        self.prompts = prompts
        self.config = config

    @property
    def _constrained(self) -> bool:
        return self.config.decoding == "constrained"

    def roll_out(self, assignments: Sequence[Assignment], sampling: Sampling) -> list[Trajectory]:
        """All episodes of the assignments, in their order. A crashed episode has the status ENV_ERROR or TIMEOUT.

        The processes of a run divide the assignments, not the episodes, because the episodes of a task share a prompt.
        """
        tries: list[list[Trajectory]] = shared(assignments, lambda part: self._roll_out(part, sampling))
        return list(chain.from_iterable(tries))

    def _roll_out(self, assignments: Sequence[Assignment], sampling: Sampling) -> list[list[Trajectory]]:
        """The episodes of each assignment, rolled out with the models of this process."""
        episodes = [
            _Episode(a.slot, a.task, rollout, sampling.seed(a.task, rollout, -1))
            for a in assignments
            for rollout in range(a.rollouts)
        ]
        most = max(1, self.family.most_open if isinstance(self.family, Limited) else len(episodes))
        for start in range(0, len(episodes), most):
            self._play(episodes[start : start + most], sampling)
        version = self.policy.version if sampling.versioned else None
        ended = iter([self._close(e, version) for e in episodes])
        return [list(islice(ended, assignment.rollouts)) for assignment in assignments]

    def _play(self, episodes: Sequence[_Episode], sampling: Sampling) -> None:
        """Play episodes to their end, all of them together."""
        host = host_of(self.family)
        try:
            self._open(host, episodes)
            for turn in range(sampling.max_steps):
                alive = [e for e in episodes if e.status is None]
                if not alive:
                    break
                self._turn(host, alive, turn, sampling)
            self._shut(host, episodes)
        finally:
            self.policy.release([e.name for e in episodes])
            host.clear()

    def _open(self, host: Host, episodes: Sequence[_Episode]) -> None:
        """Start the episodes."""
        moves = [episode.move(self.config.timeout_s) for episode in episodes]
        for episode, played in zip(episodes, host.play(moves), strict=True):
            self._take(episode, played)
            episode.first_observation = episode.observation.text
            episode.first_images = self.kept(episode.observation)
            if episode.status is None:
                episode.prompt = self._prompt(episode)

    def _turn(self, host: Host, alive: list[_Episode], turn: int, sampling: Sampling) -> None:
        longest = self.policy.max_context - self.config.max_tokens
        fitting = [e for e in alive if len(e.prompt.ids) <= longest]
        for episode in alive:
            if len(episode.prompt.ids) > longest:
                episode.status, episode.error = Status.TRUNCATED, CONTEXT_FULL
        requests = [self._request(e, turn, sampling) for e in fitting]
        completions = self.policy.generate(requests)
        replies = [self.policy.decode(completion.ids) for completion in completions]
        actions = [
            self._chosen(request, completion, reply, e.observation.actions)
            for e, request, completion, reply in zip(fitting, requests, completions, replies, strict=True)
        ]
        last = turn + 1 == sampling.max_steps
        moves = [
            e.move(self.config.timeout_s, action, last=last)
            for e, (action, _) in zip(fitting, actions, strict=True)
        ]
        answers = host.play(moves)
        for episode, completion, reply, chosen, played in zip(
            fitting, completions, replies, actions, answers, strict=True
        ):
            self._take(episode, played)
            if episode.status in (Status.ENV_ERROR, Status.TIMEOUT):
                continue
            episode.steps.append(self._step(episode, completion, reply, chosen))
            if episode.status is None:
                episode.prompt = self._prompt(episode)

    def _take(self, episode: _Episode, played: Played) -> None:
        """Take over the environment's answer. Without actions, constrained decoding would be free decoding."""
        episode.take(played)
        if episode.status is None and self._constrained and not played.observation.actions:
            episode.status, episode.error = Status.ENV_ERROR, NO_ACTIONS

    def _prompt(self, episode: _Episode) -> Prompt:
        """What the policy reads next."""
        past = episode.first_observation, episode.steps
        return next_prompt(self.policy, self.prompts, *past, episode.observation, episode.first_images)

    def _chosen(
        self, request: Request, completion: Completion, reply: str, offered: Sequence[str]
    ) -> tuple[str, bool]:
        """(action, valid). What was sampled from a choice of commands is the command that was offered.

        A reply's text need not be: it loses blanks around it, tags of thoughts are read in it, and a tokenizer may
        have normalised it.
        """
        if completion.ids in request.choices:
            return offered[request.choices.index(completion.ids)], True
        return self.prompts.action(reply, offered)

    def _step(self, episode: _Episode, completion: Completion, reply: str, chosen: tuple[str, bool]) -> Step:
        """The step that was just taken. chosen: the action, and whether it is valid."""
        return Step(
            episode.prompt.ids, completion.ids, completion.logprobs, completion.allowed, *chosen,
            episode.observation.text, episode.prompt.text, "" if self.prompts.chats else reply,
            self.kept(episode.observation), episode.prompt.images,
        )  # fmt: skip

    def kept(self, observation: Observation) -> tuple[str, ...]:
        """The names of an observation's pictures, which are in the store from now on."""
        if self.images is None:
            return ()
        self.images.add(observation.images)
        return observation.image_names

    def _request(self, episode: _Episode, turn: int, sampling: Sampling) -> Request:
        listed = episode.observation.actions if self._constrained else ()
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
            session=episode.name if chats else "",
            group="" if chats else f"{episode.slot}/{episode.task.task_id}",
            images=episode.prompt.images,
        )

    def _shut(self, host: Host, episodes: Sequence[_Episode]) -> None:
        """Close the environments. An episode keeps its status and error, even when closing fails."""
        fine = [episode for episode in episodes if not episode.error]
        errors = host.close([episode.move(self.config.timeout_s) for episode in fine])
        for episode, error in zip(fine, errors, strict=True):
            episode.error = error

    def _close(self, episode: _Episode, version: int | None) -> Trajectory:
        return Trajectory(
            task_id=episode.task.task_id,
            slot=episode.slot,
            rollout=episode.rollout,
            seed=episode.seed,
            first_observation=episode.first_observation,
            steps=tuple(episode.steps),
            outcome=1 if episode.success else -1,
            status=episode.status or Status.TRUNCATED,
            error=episode.error,
            first_images=episode.first_images,
            version=version,
        )
