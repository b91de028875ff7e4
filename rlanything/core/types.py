"""The vocabulary every room speaks: tasks, steps, trajectories, votes, proposals, and the protocols between rooms.

Everything here is an immutable value that turns into JSON and back (`to_json` / `from_json`), because the
record of a run is files. Nothing here samples, learns or touches a disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from rlanything.core.ids import content_id

Json = Any
"""A JSON value: None, bool, int, float, str, or lists and string-keyed mappings of those."""


class Status(StrEnum):
    """How a trajectory ended. Only `ok` and `truncated` ones carry an outcome that enters the statistics."""

    OK = "ok"
    """The environment said that the episode is over."""
    TRUNCATED = "truncated"
    """The step limit came first: a failure the policy is responsible for."""
    ENV_ERROR = "env_error"
    """The environment raised: nobody's failure; left out of accuracy, advantages and training."""
    TIMEOUT = "timeout"
    """The environment did not answer in time: left out like `env_error`."""


class Direction(StrEnum):
    """Which way a task is to be rewritten (Alg. 1: acc > alpha_high -> harder, acc < alpha_low -> easier)."""

    HARDER = "harder"
    EASIER = "easier"


class EventKind(StrEnum):
    """What can happen to a slot of the task buffer."""

    PROPOSED = "proposed"
    """The adapter wrote a valid q'; it is rolled out in the next iteration."""
    INVALID = "invalid"
    """The adapter's reply did not give a task that may be tried; no rollout was spent."""
    REJECTED = "rejected"
    """q' was rolled out and missed the acceptance band; the slot keeps its task."""
    ACCEPTED = "accepted"
    """q' replaced the slot's task as its next version."""


@dataclass(frozen=True)
class Task:
    """One thing to do, as immutable data.

    `instruction` is what the agent reads; `payload` is everything the environment needs to build the episode;
    `metadata` is for people (split, knobs, provenance) and does not enter the identity.
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
        """The task as a JSON object, its id included so that a reader can verify it."""
        return {
            "task_id": self.task_id,
            "env": self.env,
            "instruction": self.instruction,
            "payload": self.payload,
            "metadata": self.metadata,
        }

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
    """What the agent sees. `actions` are the admissible commands; empty means that any text may be tried."""

    text: str
    actions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepResult:
    """The environment's answer to one action. `success` is the verifier's verdict: full success only."""

    observation: Observation
    done: bool
    success: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One turn: what the policy read and wrote (token ids are the record; text is for people), and what came back.

    `allowed[t]` lists the token ids that constrained decoding permitted at response token t (empty: free decoding);
    `logprobs` are those of the sampled ids under the distribution that they were sampled from (temperature 1).
    """

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    allowed: tuple[tuple[int, ...], ...]
    action: str
    valid: bool
    observation: str


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One episode of one task. `outcome` is O_tau: +1 for full success, otherwise -1 (paper, section 3.1)."""

    task_id: str
    slot: int
    rollout: int
    seed: int
    first_observation: str
    steps: tuple[Step, ...]
    outcome: int
    status: Status
    error: str = ""

    @property
    def counts(self) -> bool:
        """Whether the outcome says something about the policy (no crash, no timeout)."""
        return self.status in (Status.OK, Status.TRUNCATED)


@dataclass(frozen=True, slots=True)
class Vote:
    """One sample S_{tau_i,j} of the reward model: verdict +1, -1, or None when no verdict could be parsed."""

    verdict: int | None
    reasoning: str
    response_ids: tuple[int, ...]
    logprobs: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The m votes of one step, with the tokens that the reward model read to give them."""

    prompt_ids: tuple[int, ...]
    votes: tuple[Vote, ...]


@dataclass(frozen=True, slots=True)
class ScoredTrajectory:
    """A trajectory that trains the policy: one advantage per step."""

    trajectory: Trajectory
    advantages: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ScoredJudgements:
    """A judged trajectory that trains the reward model: one advantage per vote, None for votes that do not train.

    `weights[i]` is the weight of step i's votes in the loss (`signals.reward_balance`).
    """

    judgements: tuple[Judgement, ...]
    advantages: tuple[tuple[float | None, ...], ...]
    weights: tuple[float, ...]


@dataclass(frozen=True)
class Proposal:
    """A rewritten task q' for a slot, and how it came about. `task` is None when the reply was invalid."""

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
    """One completion to sample. Its seed alone decides the sample, whatever it is batched with.

    `choices`: token sequences, end-of-turn included, one of which must be produced (empty: free decoding).
    `session`: requests of one session extend each other's prompt + response; an engine may keep their cache.
    `group`: requests of one group have prompts that branch off a shared trunk; an engine may read it once.
    """

    prompt_ids: tuple[int, ...]
    seed: int
    max_tokens: int
    temperature: float = 1.0
    choices: tuple[tuple[int, ...], ...] = ()
    session: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """Sampled ids with their log-probs (temperature 1, renormalised over `allowed` where decoding is constrained).

    `finished` is False when `max_tokens` came before the end-of-turn token.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    allowed: tuple[tuple[int, ...], ...]
    finished: bool


class InvalidProposal(ValueError):
    """The adapter's reply gives no task that may be tried; the message says why, in one sentence."""


@runtime_checkable
class Environment(Protocol):
    """One episode at a time. May raise; the rollout turns exceptions into `Status.ENV_ERROR`."""

    def reset(self, task: Task, seed: int) -> Observation:
        """Start the episode of `task`; the text contains the instruction."""
        ...

    def step(self, action: str) -> StepResult:
        """Act. An inadmissible action is answered in text, never raised."""
        ...

    def close(self) -> None:
        """Release what `reset` took."""
        ...


class TaskFamily(Protocol):
    """Everything the loop needs to know about a kind of task. One class per folder of `envs/`."""

    name: str

    def make(self, split: str, count: int, seed: int) -> list[Task]:
        """`count` distinct valid tasks of a split (`train`, `in_domain`, `out_of_domain`, `reward_panel`)."""
        ...

    def environment(self) -> Environment:
        """A fresh environment for tasks of this family."""
        ...

    def validate(self, task: Task) -> str:
        """Why `task` must not be tried (unparsable, unsolvable, already satisfied), or '' when it may be."""
        ...

    def describe(self, task: Task) -> str:
        """The facts of the task's scene that an adapter needs to rewrite it."""
        ...

    def parse(self, parent: Task, reply: str) -> Task:
        """The task that an adapter's reply describes. Raises `InvalidProposal`. The reply is untrusted text."""
        ...


@runtime_checkable
class Teacher(Protocol):
    """What an embedded family additionally offers to train the first tiny models and to measure the reward model."""

    def demonstrate(self, task: Task, seed: int, noise: float) -> list[tuple[Observation, str]]:
        """(observation, action) pairs of an expert that knows only what it has seen; `noise`: share of random acts."""
        ...

    def label_steps(self, task: Task, actions: Sequence[str]) -> list[bool]:
        """For each action of an episode: was it good, given what had been seen until then? (exact oracle)"""
        ...

    def explain(self, task: Task, actions: Sequence[str]) -> list[str]:
        """A short reason, of a few words, for each step's label."""
        ...

    def rewrite(self, task: Task, direction: Direction, seed: int) -> str:
        """A reply that `parse` accepts and that makes the task harder or easier, to teach an adapter."""
        ...


class Engine(Protocol):
    """Text generation behind one protocol, for policy, reward model and adapter alike."""

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Completions in the order of the requests."""
        ...

    def release(self, sessions: Sequence[str]) -> None:
        """Forget the caches of these sessions (unknown names are ignored)."""
        ...

    def sync(self) -> None:
        """Take over the weights as they are now; drops every cache."""
        ...

    def close(self) -> None:
        """Free caches and workers."""
        ...
