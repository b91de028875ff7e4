"""A stored run as the source of rollouts and proposals for a replay.

The stored replies of its reward model are read in `rewards`, by the code of its kind.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from rlanything.buffer import Event, TaskBuffer
from rlanything.buffer.filesystem import DISK
from rlanything.buffer.views.find.live import LiveRun, live_run
from rlanything.buffer.views.find.runs import RunBuffer, open_run
from rlanything.config import AdaptationConfig
from rlanything.core.errors import ConfigError
from rlanything.core.types import EventKind, Json, Proposal, Task, Trajectory
from rlanything.files.reader import read_objects
from rlanything.files.records import read_metrics
from rlanything.loop.adapt import Wanted, attempt_seed
from rlanything.loop.critic import CRITICS, Criticism, CriticRecord
from rlanything.loop.record import EpisodeRecord, NotStored
from rlanything.loop.reward_model import CriticInput
from rlanything.loop.rollout import Assignment, Sampling

Record = TypeVar("Record")
ASKED = (EventKind.PROPOSED, EventKind.INVALID)
_RECORDS = re.compile(r"iter_(\d{4,9})\.jsonl\.gz")
_ALIKE = re.compile(r"iter_.*\.jsonl\.gz", re.DOTALL)


@dataclass(frozen=True)
class StoredRun:
    """A run's folder, read iteration by iteration. Of a run in training, what was published when it was opened."""

    folder: Path

    @cached_property
    def buffers(self) -> RunBuffer:
        """The buffer of every iteration."""
        return open_run(self.folder)

    @cached_property
    def metrics(self) -> list[dict[str, Json]]:
        """The rows of metrics.jsonl. Raises `ConfigError` for a run that is not finished."""
        path = self.folder / "metrics.jsonl"
        if not path.exists():
            raise ConfigError(f"{self.folder}: not a finished run (it has no metrics.jsonl)")
        return read_metrics(path)

    @property
    def iterations(self) -> range:
        """The iterations with rollouts: all but the last, which only measures."""
        return range(len(self.metrics) - 1)

    def events(self, iteration: int) -> list[Event]:
        """The events of an iteration, in order."""
        return [event for event in self.buffers.events if event.iteration == iteration]

    @property
    def in_training(self) -> bool:
        """Whether the run is not finished."""
        return self._live is not None

    @cached_property
    def _live(self) -> LiveRun | None:
        """Where the files are while the run is in training; None for a finished run."""
        return live_run(self.folder)

    def recorded(self, name: str) -> list[int]:
        """The iterations that have records `name`, ascending."""
        found = (self._live or DISK).names(self.folder / name)
        return sorted(int(match[1]) - 1 for match in map(_RECORDS.fullmatch, found) if match)

    def unnumbered(self, name: str) -> str:
        """The first file of records `name` whose name is not that of an iteration, as no run writes it; '' for none."""
        known = {self.file(iteration, name).name for iteration in self.recorded(name) if iteration >= 0}
        found = (self._live or DISK).names(self.folder / name)
        return min((file for file in found if _ALIKE.fullmatch(file) and file not in known), default="")

    def file(self, iteration: int, name: str) -> Path:
        """The file with the records `name` of an iteration."""
        path = self.folder / name / f"iter_{iteration + 1:04d}.jsonl.gz"
        return self._live.places.get(path, [path])[0] if self._live else path

    def records(self, iteration: int, name: str) -> list[dict[str, Json]]:
        """The stored records `name` of an iteration, e.g. `rollouts`. Raises `ConfigError` naming a missing file."""
        path = self.file(iteration, name)
        if not path.exists():
            raise ConfigError(
                f"{path}: no such file; a replay needs the {name} of every iteration (train.save_rollouts)"
            )
        return list(read_objects(path))


@dataclass(frozen=True)
class StoredIteration:
    """The records of one iteration of a run. parsed: those that were read so far, by name."""

    run: StoredRun
    iteration: int
    parsed: dict[str, list[Any]] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def episodes(self) -> list[EpisodeRecord]:
        """The episodes. Raises `ConfigError` naming the line that cannot be read."""
        return self.read("rollouts", EpisodeRecord.from_json)

    @cached_property
    def tasks(self) -> Mapping[str, Task]:
        """By its id, every task that the iteration's rollouts can be of: heads of the buffer, and proposals."""
        buffer = self.run.buffers.at(self.iteration)
        heads = [buffer.head(slot) for slot in buffer.slots]
        proposed = [event.task for event in self.run.buffers.events if event.task is not None]
        return {task.task_id: task for task in (*proposed, *heads)}

    def critics(self) -> list[CriticRecord]:
        """The records of a critic that is a model. Raises `ConfigError` like `episodes`."""
        return self.read(CRITICS, CriticRecord.from_json)

    def read(self, name: str, from_json: Callable[[Mapping[str, Json]], Record]) -> list[Record]:
        """The records `name`, parsed once. Raises `ConfigError` naming the line that cannot be read."""
        if name in self.parsed:
            return self.parsed[name]
        found: list[Record] = []
        for number, record in enumerate(self.run.records(self.iteration, name), 1):
            try:
                found.append(from_json(record))
            except ValueError as error:
                raise ConfigError(f"{self.run.file(self.iteration, name)}:{number}: {error}") from None
        self.parsed[name] = found
        return found


class StoredRollouts:
    """The episodes of one iteration, as a `RolloutSource`."""

    def __init__(self, stored: Iterable[EpisodeRecord]) -> None:
        self.trajectories: dict[tuple[int, str], list[Trajectory]] = defaultdict(list)
        for record in stored:
            trajectory = record.episode.trajectory
            self.trajectories[trajectory.slot, trajectory.task_id].append(trajectory)

    def roll_out(self, assignments: Sequence[Assignment], sampling: Sampling) -> list[Trajectory]:
        """The stored episodes.

        Raises `NotStored` when the run has another number of rollouts of a task, or when one was not drawn for its
        place: its number or its seed is that of another run, iteration, task or rollout.
        """
        found: list[Trajectory] = []
        for assignment in assignments:
            tries = self.trajectories.get((assignment.slot, assignment.task.task_id), [])
            if len(tries) != assignment.rollouts:
                raise NotStored(
                    f"iteration {sampling.iteration}, slot {assignment.slot}: the run has {len(tries)} rollouts of "
                    f"task {assignment.task.task_id[:12]}, not {assignment.rollouts}"
                )
            for number, trajectory in enumerate(tries):
                _require_drawn(
                    trajectory, number, sampling.seed(assignment.task, number, -1), sampling.iteration
                )
            found += tries
        return found


def _require_drawn(trajectory: Trajectory, number: int, seed: int, iteration: int) -> None:
    """Raise `NotStored` unless the trajectory has the number and the seed of its place in the run."""
    for name, found, expected in (("number", trajectory.rollout, number), ("seed", trajectory.seed, seed)):
        if found != expected:
            raise NotStored(
                f"iteration {iteration}, slot {trajectory.slot}, rollout {number}: its {name} is {found}, and that "
                f"of this place in the run is {expected}: it was drawn for another one, or was changed"
            )


@dataclass
class StoredProposals:
    """The proposals of one iteration, as a `ProposalSource`.

    said: the stored records of the critic. unanswered: wanted rewrites that the run did not ask for.
    """

    events: Sequence[Event]
    config: AdaptationConfig
    said: Sequence[CriticRecord]
    unanswered: list[Wanted] = field(default_factory=list)

    def critics(
        self, tasks: Sequence[Task], inputs: Sequence[CriticInput], run_seed: int, iteration: int
    ) -> list[Criticism]:
        """The criticism of each task: the extract, or the criticism in the critic model's stored replies."""
        extracted = [Criticism(given.extract) for given in inputs]
        if self.config.critic == "extractive":
            return extracted
        stored = {record.task_id: record.criticism for record in self.said}
        return [
            stored[task.task_id].read_again(given) if task.task_id in stored else text
            for task, given, text in zip(tasks, inputs, extracted, strict=True)
        ]

    def propose(
        self,
        wanted: Sequence[Wanted],
        buffer: TaskBuffer,
        run_seed: int,
        iteration: int,
        offered: Sequence[Proposal] = (),
    ) -> list[Proposal]:
        """The stored proposals for the wanted rewrites. Those that the run did not ask for go to `unanswered`."""
        asked = {(e.slot, e.direction): e for e in self.events if e.kind in ASKED}
        found = []
        for want in wanted:
            slot, way, accuracy, critic = want
            event = asked.get((slot, way))
            if event is None:
                self.unanswered.append(want)
            else:
                seeds = [
                    attempt_seed(run_seed, iteration, event.parent_id, k) for k in range(self.config.attempts)
                ]
                found.append(_proposal(event, accuracy, critic, seeds))
        return found


def _proposal(event: Event, accuracy: float, critic: str, seeds: Sequence[int]) -> Proposal:
    """The stored proposal. Its prompt is not stored and is '' here.

    seeds: the seeds of its attempts. A stored seed that is not among them is replaced by the last one."""
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
        seed=event.seed if event.seed in seeds else seeds[-1],
        iteration=event.iteration,
        task=task,
        reason=reason,
    )
