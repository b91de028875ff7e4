"""The types that all packages share: tasks, steps, trajectories, votes, proposals, requests.

All values are immutable. `core.records` turns them into JSON and back. Nothing here samples, learns or reads files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import chain
from typing import Any, Protocol

from rlanything.core.errors import ModelOutputError
from rlanything.core.ids import content_id
from rlanything.core.images import Image

Json = Any
"""A JSON value: None, bool, int, float, str, or lists and string-keyed mappings of those."""


class Status(StrEnum):
    """How a trajectory ended. Only the outcomes of `ok` and `truncated` trajectories enter the statistics."""

    OK = "ok"
    """The environment said that the episode is over."""
    TRUNCATED = "truncated"
    """The episode reached the step limit: a failure of the policy."""
    ENV_ERROR = "env_error"
    """The environment raised an exception. The trajectory is left out of accuracy, advantages and training."""
    TIMEOUT = "timeout"
    """The environment did not answer in time. The trajectory is left out like one with `env_error`."""


class Direction(StrEnum):
    """In which direction a task is rewritten (Alg. 1: acc > alpha_high -> harder, acc < alpha_low -> easier)."""

    HARDER = "harder"
    EASIER = "easier"


class EventKind(StrEnum):
    """What can happen to a slot of the task buffer."""

    PROPOSED = "proposed"
    """The adapter wrote a valid rewrite q'. The next iteration rolls it out."""
    INVALID = "invalid"
    """The adapter's reply holds no valid task. Nothing is rolled out."""
    REJECTED = "rejected"
    """q' was rolled out and not accepted. The slot keeps its task."""
    ACCEPTED = "accepted"
    """q' became the next version of the slot's task."""


DECISIONS = (EventKind.ACCEPTED, EventKind.REJECTED)
"""What can happen to a rewrite that was rolled out."""


@dataclass(frozen=True)
class Task:
    """A task, as immutable data.

    instruction: what the agent reads. payload: everything the environment needs to build the episode.
    metadata: for people (split, settings, origin); not part of `task_id`.
    """

    env: str
    instruction: str
    payload: Mapping[str, Json]
    metadata: Mapping[str, Json] = field(default_factory=dict)

    @cached_property
    def task_id(self) -> str:
        """sha256 of the canonical JSON of env, instruction and payload (64 hex digits)."""
        return content_id({"env": self.env, "instruction": self.instruction, "payload": self.payload})

    def to_json(self) -> dict[str, Json]:
        """The task as a JSON object, with its id, so that `from_json` can verify the content."""
        return {
            "task_id": self.task_id,
            "env": self.env,
            "instruction": self.instruction,
            "payload": self.payload,
            "metadata": self.metadata,
        }

    def copy(self) -> Task:
        """The same task with values of its own, for code of an environment: it may change what it is given."""
        return replace(self, payload=deepcopy(self.payload), metadata=deepcopy(self.metadata))

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Task:
        """Inverse of `to_json`. Raises `ValueError` when a stored id does not match the content."""
        task = cls(data["env"], data["instruction"], data["payload"], data.get("metadata", {}))
        stored = data.get("task_id")
        if stored is not None and stored != task.task_id:
            raise ValueError(f"task_id {stored} does not match its content (expected {task.task_id})")
        return task


@dataclass(frozen=True, slots=True)
class Observation:
    """What the agent sees. actions: the admissible actions; empty: any text is accepted as an action.

    images: pictures, in the order in which they are shown. The text stands for itself: a policy that reads no pictures
    gets the same text.
    """

    text: str
    actions: tuple[str, ...] = ()
    images: tuple[Image, ...] = ()

    @property
    def image_names(self) -> tuple[str, ...]:
        """The names of the pictures."""
        return tuple(image.sha256 for image in self.images)


@dataclass(frozen=True, slots=True)
class StepResult:
    """The environment's answer to one action. success: True only for full success; it counts where `done` is True."""

    observation: Observation
    done: bool
    success: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One turn: what the policy read and wrote, and the environment's answer. Training uses the token ids only.

    logprobs: log-probs of the sampled ids at temperature 1, normalised over the allowed ids.
    allowed[t]: the ids that constrained decoding permitted at response token t; empty: free decoding.
    action: the text that the environment got. valid: whether the response held an action. observation: the answer.
    prompt_text, response_text: the whole prompt and response, where the reward model reads them (model.context =
    history). Both are empty where an episode is one conversation: the reward model then reads actions and observations.
    images, prompt_images: the names of the pictures (`core.images`) of the answer, and of those that the prompt shows.
    """

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    allowed: tuple[tuple[int, ...], ...]
    action: str
    valid: bool
    observation: str
    prompt_text: str = ""
    response_text: str = ""
    images: tuple[str, ...] = ()
    prompt_images: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One rollout of one task. outcome: O_tau, +1 for full success, otherwise -1 (paper, section 2.1).

    first_images: the names of the pictures of the first observation.
    version: of the weights that sampled it; None where they can only be those of its iteration.
    """

    task_id: str
    slot: int
    rollout: int
    seed: int
    first_observation: str
    steps: tuple[Step, ...]
    outcome: int
    status: Status
    error: str = ""
    first_images: tuple[str, ...] = ()
    version: int | None = None

    @property
    def images(self) -> Iterator[str]:
        """The names of all pictures of the episode, each once, in the order in which they were seen."""
        seen = chain(self.first_images, *(step.images for step in self.steps))
        return iter(dict.fromkeys(seen))

    @property
    def counts(self) -> bool:
        """Whether the outcome enters the statistics: the environment neither crashed nor timed out."""
        return self.status in (Status.OK, Status.TRUNCATED)

    @property
    def failed(self) -> bool:
        """Whether the episode counts, and as a failure. One without a step does, where its prompt did not fit."""
        return self.counts and self.outcome < 0


class Reply(Protocol):
    """A sampled reply of a reward model: a `Vote` or a `unittests.UnitTest`."""

    @property
    def response_ids(self) -> tuple[int, ...]:
        """The sampled ids."""
        ...

    @property
    def logprobs(self) -> tuple[float, ...]:
        """Their log-probs."""
        ...


class Question(Protocol):
    """A question to a reward model, with its sampled replies."""

    @property
    def prompt_ids(self) -> tuple[int, ...]:
        """What the reward model read."""
        ...

    @property
    def images(self) -> tuple[str, ...]:
        """The names of the pictures that the prompt shows, in its order."""
        ...

    @property
    def replies(self) -> Sequence[Reply]:
        """What it sampled."""
        ...


@dataclass(frozen=True, slots=True)
class Vote:
    """One sample S_{tau_i,j} of the reward model: verdict +1, -1, or None when no verdict could be parsed.

    logprobs: empty for a reply of an endpoint, which has none.
    """

    verdict: int | None
    reasoning: str
    response_ids: tuple[int, ...]
    logprobs: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The m votes on one step, with the tokens and pictures that the reward model read. A `Question`.

    images: the names of the pictures, in the order of the prompt.
    """

    prompt_ids: tuple[int, ...]
    votes: tuple[Vote, ...]
    images: tuple[str, ...] = ()

    @property
    def replies(self) -> tuple[Vote, ...]:
        """The votes."""
        return self.votes


@dataclass(frozen=True, slots=True)
class Lesson:
    """How the replies to one question train the reward model.

    advantages: one a reply, None for a reply that does not train. weight: the weight of the question in the loss.
    """

    advantages: tuple[float | None, ...]
    weight: float

    @property
    def trains(self) -> bool:
        """Whether any reply trains."""
        return any(advantage is not None for advantage in self.advantages)


@dataclass(frozen=True, slots=True)
class Episode:
    """A trajectory with its judgements, and with how it trains both models.

    judgements: the votes on its steps, from the first step on; empty where the reward model does not vote on steps.
    advantages: one a step; None: the trajectory does not train the policy.
    lessons: one a judgement, None for a judgement that does not train the reward model; empty: none does.
    """

    trajectory: Trajectory
    judgements: tuple[Judgement, ...] = ()
    advantages: tuple[float, ...] | None = None
    lessons: tuple[Lesson | None, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoredTrajectory:
    """A trajectory that trains the policy: one advantage per step."""

    trajectory: Trajectory
    advantages: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ScoredReplies:
    """Questions that train the reward model, with the advantages of their replies.

    advantages[i][j]: of reply j to question i; None: the reply does not train. weights[i]: of question i in the loss.
    """

    questions: tuple[Question, ...]
    advantages: tuple[tuple[float | None, ...], ...]
    weights: tuple[float, ...]

    @classmethod
    def of(cls, pairs: Sequence[tuple[Question, Lesson]]) -> ScoredReplies:
        """From pairs of a question and its lesson."""
        return cls(
            tuple(question for question, _ in pairs),
            tuple(lesson.advantages for _, lesson in pairs),
            tuple(lesson.weight for _, lesson in pairs),
        )

    def part(self, start: int, stop: int) -> ScoredReplies:
        """The questions from `start` to before `stop`."""
        return ScoredReplies(
            self.questions[start:stop], self.advantages[start:stop], self.weights[start:stop]
        )


@dataclass(frozen=True)
class Proposal:
    """A rewritten task q' for a slot, and how it was made. task: None when the reply was invalid; `reason` says why."""

    slot: int
    direction: Direction
    parent_id: str
    parent_accuracy: float
    critic: str
    prompt: str
    reply: str
    seed: int
    iteration: int
    task: Task | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One completion to sample. Its seed decides the sample; other requests in the batch change nothing.

    choices: the reply must be one of these token sequences, which include the end of turn; empty: free decoding.
    session: each prompt of a session begins with the prompt and response before it. An engine may keep the cache.
    group: the prompts of a group have a common beginning. An engine may read it once.
    images: the names of the pictures that the prompt shows, in its order.
    """

    prompt_ids: tuple[int, ...]
    seed: int
    max_tokens: int
    temperature: float = 1.0
    choices: tuple[tuple[int, ...], ...] = ()
    session: str = ""
    group: str = ""
    images: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """Sampled ids with their log-probs (at temperature 1, normalised over `allowed` where decoding is constrained).

    logprobs: empty where the engine has none: an endpoint returns text. Such a completion cannot train.
    finished: False when `max_tokens` was reached before the end of turn.
    version: of the weights that sampled it, as `Engine.sync` names them; 0: those that the engine was opened with.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    allowed: tuple[tuple[int, ...], ...]
    finished: bool
    version: int = 0


class InvalidProposal(ModelOutputError):
    """The adapter's reply holds no valid task. The message says why, in one sentence."""
