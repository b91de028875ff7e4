"""The batch of the next iteration, sampled while this one is judged and learned from (`train.staleness` 1).

Which weights sample it is fixed by the number of the iteration, and not by who is faster. So it is the same batch in a
thread of its own and without one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import replace
from threading import Event, Thread
from typing import Self

from rlanything.core.errors import MachineError
from rlanything.core.records.rollouts import (
    proposal_from_json,
    proposal_to_json,
    trajectory_from_json,
    trajectory_to_json,
)
from rlanything.core.timing import Lap, Timer, phase
from rlanything.core.types import Trajectory
from rlanything.core.unittests import Examination, Tables
from rlanything.loop.batch import Batch, Batches, LoopState, RolledOut
from rlanything.loop.episodes import Host, Move, Played
from rlanything.loop.share import current_host, hosted
from rlanything.runs import build

PHASE = "ahead"
"""What was done beside the iteration, in its times."""


class Ahead:
    """One batch: nobody has asked for it, it is being sampled, or it lies ready. Whoever makes it closes it."""

    def __init__(self) -> None:
        self._task: _Task | None = None
        self._ready: Batch | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """End what is being sampled, after the turn that it is in."""
        if self._task is not None:
            self._task.cancel()

    def begin(self, roll_out: Callable[[], Batch]) -> None:
        """Sample a batch: beside what follows where workers run the environments, else at once.

        In another thread than the main one, Python can end no environment that hangs (`loop.episodes.deadline`).
        """
        host = current_host()
        if host is None:
            self._ready = roll_out()
        else:
            self._task = _Task(roll_out, host)

    def wait(self) -> Lap | None:
        """Wait until the batch lies ready. Returns its times where it was sampled beside other work.

        Raises what sampling raised.
        """
        if self._task is None:
            return None
        with phase("wait"):
            self._ready, lap = self._task.result()
        self._task = None
        return lap

    @property
    def trajectories(self) -> list[Trajectory]:
        """Of the batch that lies ready; [] where there is none."""
        return [] if self._ready is None else self._ready.trajectories

    def take(self) -> Batch | None:
        """The batch, which is gone from here; None where there is none."""
        found, self._ready = self._ready, None
        return found

    def saved(self, state: LoopState) -> str:
        """As JSON: the batch that lies ready, which is that of `state`, and what the state has because of it."""
        return json.dumps(
            {
                "later": [proposal_to_json(proposal) for proposal in state.later],
                "tested": state.tested,
                "episodes": None if self._ready is None else list(map(trajectory_to_json, self.trajectories)),
            }
        )

    def restore(self, saved: str, state: LoopState, batches: Batches) -> LoopState:
        """Take over what `saved` gave, so that nothing is sampled again. Returns the whole state.

        Raises `ValueError` for the episodes of another state.
        """
        found = json.loads(saved)
        later, tested = tuple(map(proposal_from_json, found["later"])), tuple(found["tested"])
        state = replace(state, later=later, tested=tested)
        if found["episodes"] is not None:
            self._ready = batches.of(state, RolledOut([*map(trajectory_from_json, found["episodes"])]))
        return state


class _Task:
    """Sampling in a thread, with times of its own."""

    def __init__(self, roll_out: Callable[[], Batch], host: Host) -> None:
        self._roll_out, self._host, self._timer = roll_out, _Stoppable(host), Timer()
        self._batch: Batch | None = None
        self._error: BaseException | None = None
        self._thread = Thread(target=copy_context().run, args=(self._run,), name="ahead")
        self._thread.start()

    def result(self) -> tuple[Batch, Lap]:
        """The batch and what it took. Raises what sampling raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._batch is not None
        return self._batch, self._timer.lap()

    def cancel(self) -> None:
        """End it, whatever it has. Its error is of no interest: something else has ended the run."""
        self._host.stopped.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            build.one_thread()  # what torch is told of threads holds for the thread that tells it
            with self._timer.running(), hosted(self._host):
                self._batch = self._roll_out()
        except BaseException as error:  # raised again by whoever waits for the batch
            self._error = error


class _Stoppable:
    """A host that plays no further turn once it is stopped."""

    def __init__(self, host: Host) -> None:
        self._host, self.stopped = host, Event()

    def play(self, moves: Sequence[Move]) -> list[Played]:
        """See `Host`. Raises `MachineError` when it is stopped."""
        if self.stopped.is_set():
            raise MachineError("the run has ended; what was being sampled for the next iteration is not used")
        return self._host.play(moves)

    def close(self, moves: Sequence[Move]) -> list[str]:
        """See `Host`."""
        return self._host.close(moves)

    def clear(self) -> None:
        """See `Host`."""
        self._host.clear()

    def examine(self, work: Sequence[Examination]) -> list[Tables]:
        """See `Host`."""
        return self._host.examine(work)
