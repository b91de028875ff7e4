"""What a run stored, behind the protocols of the loop: episodes, votes, tests and proposals, without models."""

from __future__ import annotations

import gzip
import json
import zlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from rlanything.buffer import Event, RunBuffer, TaskBuffer, open_run
from rlanything.config import AdaptationConfig, ConfigError
from rlanything.core.types import EventKind, Json, Judgement, Proposal, Task, Trajectory
from rlanything.loop.adapt import Wanted
from rlanything.loop.critic import Remarks
from rlanything.loop.record import Episode, WrittenTests
from rlanything.loop.rollout import Assignment, Sampling
from rlanything.loop.testwriter import Attempts, Examined

Record = TypeVar("Record")
ASKED = (EventKind.PROPOSED, EventKind.INVALID)


class NotStored(ConfigError):
    """The run holds nothing that would answer this: it never happened."""


@dataclass(frozen=True)
class StoredRun:
    """A finished run's folder, read iteration by iteration."""

    folder: Path

    @cached_property
    def buffers(self) -> RunBuffer:
        """The buffer of every iteration."""
        return open_run(self.folder)

    @cached_property
    def metrics(self) -> list[dict[str, Json]]:
        """The rows of metrics.jsonl. Raises `ConfigError`."""
        path = self.folder / "metrics.jsonl"
        if not path.is_file():
            raise ConfigError(f"{self.folder}: not a finished run (it has no metrics.jsonl)")
        return [json.loads(line) for line in path.read_text().splitlines()]

    @property
    def iterations(self) -> range:
        """The iterations that collected something: all but the last, which only measures."""
        return range(len(self.metrics) - 1)

    def events(self, iteration: int) -> list[Event]:
        """What happened in an iteration, in order."""
        return [event for event in self.buffers.events if event.iteration == iteration]

    def records(self, iteration: int, kind: str = "rollouts") -> list[dict[str, Json]]:
        """The stored lines of an iteration's episodes, or of its `tests`. Raises `ConfigError` naming the file."""
        path = self.folder / kind / f"iter_{iteration + 1:04d}.jsonl.gz"
        try:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                return [json.loads(line) for line in file]
        except FileNotFoundError:
            raise ConfigError(
                f"{path}: no such file; a replay needs the {kind} of every iteration (train.save_rollouts)"
            ) from None
        except (OSError, EOFError, zlib.error, ValueError) as error:
            raise ConfigError(f"{path}: cannot be read ({error})") from None


def episodes(run: StoredRun, iteration: int) -> list[Episode]:
    """The episodes of an iteration. Raises `ConfigError` naming the line that is none."""
    return _read(run, iteration, "rollouts", Episode.from_json)


def written_tests(run: StoredRun, iteration: int) -> list[WrittenTests]:
    """The tests of an iteration. Raises `ConfigError` naming the line that holds none."""
    return _read(run, iteration, "tests", WrittenTests.from_json)


def _read(
    run: StoredRun, iteration: int, kind: str, from_json: Callable[[Mapping[str, Json]], Record]
) -> list[Record]:
    found = []
    for number, record in enumerate(run.records(iteration, kind), 1):
        try:
            found.append(from_json(record))
        except (KeyError, TypeError, ValueError) as error:
            where = f"{run.folder}: {kind} of iteration {iteration}, line {number}"
            raise ConfigError(f"{where}: not what it should be ({error!r})") from None
    return found


class StoredActs:
    """The episodes of one iteration, handed out to whoever asks for the task that they are of."""

    def __init__(self, stored: Iterable[Episode]) -> None:
        self.episodes: dict[tuple[int, str], list[Trajectory]] = defaultdict(list)
        for episode in stored:
            trajectory = episode.trajectory
            self.episodes[trajectory.slot, trajectory.task_id].append(trajectory)

    def run(self, assignments: Sequence[Assignment], sampling: Sampling) -> list[Trajectory]:
        """The stored episodes. Raises `NotStored` for a task that was not rolled out, or not as often."""
        found: list[Trajectory] = []
        for assignment in assignments:
            tries = self.episodes.get((assignment.slot, assignment.task.task_id), [])
            if len(tries) != assignment.rollouts:
                raise NotStored(
                    f"iteration {sampling.iteration}, slot {assignment.slot}: the run has {len(tries)} rollouts of "
                    f"task {assignment.task.task_id[:12]}, not {assignment.rollouts}"
                )
            found += tries
        return found


class StoredJudges:
    """The votes of one iteration."""

    def __init__(self, stored: Iterable[Episode]) -> None:
        self.votes = {_key(e.trajectory): e.judgements for e in stored}

    def run(
        self, trajectories: Sequence[Trajectory], run_seed: int, iteration: int
    ) -> list[tuple[Judgement, ...]]:
        """The stored judgements of trajectories that are stored themselves."""
        return [self.votes[_key(trajectory)] for trajectory in trajectories]


class StoredTests:
    """The tests of one iteration, and what programs did on them.

    Two slots can hold the same task: each gets tests of its own, in the order in which they are stored.
    """

    def __init__(self, stored: Iterable[WrittenTests]) -> None:
        self.tests: dict[str, deque[Examined]] = defaultdict(deque)
        for tests in stored:
            self.tests[tests.task_id].append(tests.examined)

    def run(self, work: Sequence[Attempts], run_seed: int, iteration: int, *, write: bool) -> list[Examined]:
        """What is stored of the tasks. Raises `NotStored`."""
        return [self._next(attempts.task.task_id, iteration) for attempts in work]

    def _next(self, task_id: str, iteration: int) -> Examined:
        if not self.tests[task_id]:
            raise NotStored(f"iteration {iteration}: the run holds no more tests of task {task_id[:12]}")
        return self.tests[task_id].popleft()


@dataclass
class StoredRewrites:
    """The proposals of one iteration. `unanswered`: the wanted rewrites that the run never asked for."""

    events: Sequence[Event]
    config: AdaptationConfig
    unanswered: list[Wanted] = field(default_factory=list)

    def critics(
        self, tasks: Sequence[Task], remarks: Sequence[Remarks], run_seed: int, iteration: int
    ) -> list[str]:
        """Extracted anew, or, where a model wrote them, as stored."""
        extracted = [remark.extracted for remark in remarks]
        if self.config.critic == "extractive":
            return extracted
        stored = {e.parent_id: e.critic for e in self.events if e.kind in ASKED}
        return [stored.get(task.task_id, text) for task, text in zip(tasks, extracted, strict=True)]

    def propose(
        self, wanted: Sequence[Wanted], buffer: TaskBuffer, run_seed: int, iteration: int
    ) -> list[Proposal]:
        """The stored answers to those rewrites that were asked for."""
        asked = {(e.slot, e.direction): e for e in self.events if e.kind in ASKED}
        found = []
        for want in wanted:
            slot, way, accuracy, critic = want
            event = asked.get((slot, way))
            if event is None:
                self.unanswered.append(want)
            else:
                found.append(_proposal(event, accuracy, critic))
        return found


def _proposal(event: Event, accuracy: float, critic: str) -> Proposal:
    """The proposal as it was made; the request's text is not stored, and nothing is decided by it."""
    task = event.task if event.kind is EventKind.PROPOSED else None
    reason = event.reason if task is None else ""
    return Proposal(
        slot=event.slot,
        direction=event.direction,
        parent_id=event.parent_id,
        parent_accuracy=accuracy,
        critic=critic,
        prompt="",
        reply=event.reply,
        seed=event.seed,
        iteration=event.iteration,
        task=task,
        reason=reason,
    )


def _key(trajectory: Trajectory) -> tuple[int, str, int]:
    return trajectory.slot, trajectory.task_id, trajectory.rollout
