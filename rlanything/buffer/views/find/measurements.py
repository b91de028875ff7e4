"""acc(q) of a run's tasks, iteration by iteration, counted from the stored outcomes of its rollouts.

runs/<arm>/seed-<n>/rollouts/iter_0007.jsonl.gz    the rollouts that led to snapshot 7: those of iteration 6
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlanything.buffer import fields
from rlanything.buffer.event import Event
from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.storage import FOLDER
from rlanything.buffer.views.find.runs import RunBuffer
from rlanything.core.types import EventKind, Status
from rlanything.files.reader import FileError, values

_COUNTED = (Status.OK.value, Status.TRUNCATED.value)


@dataclass(frozen=True)
class Measurement:
    """In an iteration, `solved` of `rollouts` episodes of a task succeeded. `proposal`: the task was a proposed q'."""

    iteration: int
    slot: int
    task_id: str
    solved: int
    rollouts: int
    proposal: bool

    @property
    def accuracy(self) -> float | None:
        """acc(q); None when all episodes crashed."""
        return self.solved / self.rollouts if self.rollouts else None


def rollouts_folder(run: RunBuffer) -> Path:
    """Where the rollouts of a run lie, if they were kept."""
    return (run.folder.parent if run.folder.name == FOLDER else run.folder) / "rollouts"


def rollout_files(run: RunBuffer) -> dict[int, Path]:
    """Iteration -> the file of its rollouts, if it was kept."""
    folder = rollouts_folder(run)
    names = set(run.files.names(folder))
    numbered = ((n - 1, f"iter_{n:04d}.jsonl.gz") for n in run.iterations if n > 0)
    return {iteration: folder / name for iteration, name in numbered if name in names}


def measurements(run: RunBuffer) -> Iterator[Measurement]:
    """Every group of rollouts in the run, by iteration, slot and task. Raises `TaskBufferError` for a bad file.

    A file is read once: a comparison asks several times, and a run's rollouts take half a second to read.
    """
    for iteration, path in rollout_files(run).items():
        if path not in run.counted:
            run.counted[path] = read_measurements(run, iteration, path)
        yield from run.counted[path]


Accuracies = dict[tuple[int, str], float]
"""(slot, task id) -> acc(q)."""


def read_measurements(run: RunBuffer, iteration: int, path: Path) -> list[Measurement]:
    """The groups of one file of rollouts."""
    outcomes: dict[tuple[int, str, bool], list[int]] = defaultdict(list)
    for number, record in enumerate(_records(run, path), start=1):
        try:
            key, outcome = _episode(record)
        except ValueError as error:
            raise TaskBufferError(f"{path}, line {number}: {error}") from error
        outcomes[key] += outcome
    return [
        Measurement(iteration, slot, task_id, sum(o > 0 for o in found), len(found), proposal)
        for (slot, task_id, proposal), found in sorted(outcomes.items())
    ]


def last_accuracies(run: RunBuffer, iteration: int) -> Accuracies:
    """The last acc(q) of every task that was measured before `iteration`."""
    return {key: value for _, key, value in history(run, iteration)}


def first_accuracies(run: RunBuffer, iteration: int) -> Accuracies:
    """The first acc(q) of every task that was measured before `iteration`."""
    return {key: value for _, key, value in reversed(history(run, iteration))}


def history(run: RunBuffer, iteration: int) -> list[tuple[int, tuple[int, str], float]]:
    """(iteration, (slot, task id), acc(q)) of every measurement before `iteration`, in order."""
    known = [found for event in run.events_before(iteration) for found in _reported(event)]
    for m in measurements(run):
        if m.accuracy is not None and m.iteration < iteration:
            known.append((m.iteration, (m.slot, m.task_id), m.accuracy))
    return sorted(
        known, key=lambda item: item[0]
    )  # a stable sort: rollouts come after the events of their iteration


def _reported(event: Event) -> Iterator[tuple[int, tuple[int, str], float]]:
    """The measurements that an event reports. A decision repeats its parent's acc(q), which is not counted again."""
    if event.kind in (EventKind.PROPOSED, EventKind.INVALID):
        yield event.iteration, (event.slot, event.parent_id), event.parent_accuracy
    if event.task is not None and event.accuracy is not None:
        yield event.iteration, (event.slot, event.task.task_id), event.accuracy


def _episode(record: Mapping[str, Any]) -> tuple[tuple[int, str, bool], list[int]]:
    """(slot, task id, is it a proposal), and the outcome if it counts."""
    trajectory = record.get("trajectory")
    if not isinstance(trajectory, dict) or not isinstance(record.get("proposal"), bool):
        raise TaskBufferError("not the record of a rollout")
    key = fields.count(trajectory, "slot"), fields.text(trajectory, "task_id"), record["proposal"]
    outcome = fields.whole(trajectory, "outcome")
    return key, [outcome] if fields.text(trajectory, "status") in _COUNTED else []


def _records(run: RunBuffer, path: Path) -> Iterator[dict[str, Any]]:
    try:
        with run.files.open(path) as file:
            for number, value in values(file, path):
                if not isinstance(value, dict):
                    raise TaskBufferError(f"{path}, line {number}: not the record of a rollout")
                yield value
    except FileError as error:
        raise TaskBufferError(str(error)) from error
    except OSError as error:
        raise TaskBufferError(f"{path}: cannot be read ({error})") from error
