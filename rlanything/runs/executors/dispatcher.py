"""Gives the work of environments to workers: one order at a time to each, and again where it is lost.

An order can be given to any worker, any number of times, with the same results (`loop.episodes`). So a lost order is
given again, an order that takes long is given to a second worker as well, and the first answer counts.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import islice
from threading import Lock
from typing import Any

from rlanything.config import ExecutorConfig
from rlanything.core.errors import MachineError
from rlanything.core.unittests import Examination, Tables
from rlanything.loop.episodes import Move, Played
from rlanything.runs.executors.crew import Crew, Finished, Job, Member
from rlanything.runs.progress.ticker import Ticker

POLL_S = 0.2
"""How often it is looked whether a worker is slow."""
SILENT_S = 10.0
"""Work that takes longer prints its progress."""


class Dispatcher:
    """`loop.episodes.Host` that has its work done by a crew. Threads take turns: one asks after the other."""

    def __init__(self, crew: Crew, settings: ExecutorConfig) -> None:
        self._crew, self._settings = crew, settings
        self._homes: dict[Hashable, Member] = {}
        """The worker that has an episode open, by the episode's name."""
        self._epoch = 0
        self._turn = Lock()

    def play(self, moves: Sequence[Move]) -> list[Played]:
        """See `Host`. An episode stays with the worker that has it open, as long as that one answers."""
        with self._turn:
            return self._done("play", moves, [move.key for move in moves])

    def close(self, moves: Sequence[Move]) -> list[str]:
        """See `Host`."""
        with self._turn:
            return self._done("close", moves, [move.key for move in moves])

    def examine(self, work: Sequence[Examination]) -> list[Tables]:
        """See `Host`."""
        with self._turn:
            return self._done("examine", work, [None] * len(work))

    def clear(self) -> None:
        """See `Host`. A worker closes what it has open when it gets its next order."""
        with self._turn:
            self._epoch += 1
            self._homes.clear()

    def _done(self, ask: str, work: Sequence[Any], keys: Sequence[Hashable]) -> list[Any]:
        """The results of `ask` for all items, in their order.

        Raises what an order raised, and `MachineError` when an order was lost `executor.attempts` times.
        """
        jobs = list(self._jobs(ask, work, keys))
        self._crew.rest()
        waiting, left, start = deque(jobs), len(jobs), time.monotonic()
        ticker = Ticker(f"environments: {ask}", len(work), every_s=SILENT_S)
        try:
            while left:
                self._assign(waiting, jobs)
                left -= sum(self._took(found, waiting) for found in self._crew.finished(POLL_S))
                if time.monotonic() - start > SILENT_S:
                    ticker.tick(sum(len(job.part) for job in jobs if job.results is not None))
        finally:
            for job in jobs:  # after an error, nobody waits for the others any more
                job.results = job.results or []
        by_place = {p: r for job in jobs for p, r in zip(job.places, job.results or [], strict=True)}
        return [by_place[place] for place in range(len(work))]

    def _jobs(self, ask: str, work: Sequence[Any], keys: Sequence[Hashable]) -> Iterator[Job]:
        """The items, at most `executor.bundle` in a job. The episodes of a job have the same home."""
        by_home: dict[Member | None, list[int]] = {}
        for place, key in enumerate(keys):
            by_home.setdefault(self._homes.get(key), []).append(place)
        for places in by_home.values():
            for chosen in _bundles(places, self._settings.bundle):
                own = [keys[place] for place in chosen if keys[place] is not None]
                yield Job(ask, chosen, tuple(work[place] for place in chosen), tuple(own))

    def _assign(self, waiting: deque[Job], jobs: Sequence[Job]) -> None:
        """Give every idle worker a job, if there is one for it."""
        for member in self._crew.members:
            job = self._chosen(member, waiting, jobs) if member.idle else None
            if job is not None:
                if job in waiting:
                    waiting.remove(job)
                self._crew.give(member, job, self._epoch, _allowed(job, self._home(job) is member))

    def _chosen(self, member: Member, waiting: Iterable[Job], jobs: Sequence[Job]) -> Job | None:
        """Its own episodes first, then what is nobody's or a slow worker's, then what a slow worker does now."""
        patience = self._settings.patience_s
        others: list[Job] = []
        for job in waiting:
            home = self._home(job)
            if home is member:
                return job
            if home is None or home.for_longer_than(patience):
                others.append(job)
        if others:
            return others[0]
        for job in jobs:
            alone = len(job.holders) == 1 and job.results is None
            if alone and job.holders[0].for_longer_than(patience):
                return job
        return None

    def _home(self, job: Job) -> Member | None:
        """The worker that has the episodes of a job open; None: nobody has."""
        home = self._homes.get(job.keys[0]) if job.keys else None
        return home if home in self._crew.members else None

    def _took(self, found: Finished, waiting: deque[Job]) -> bool:
        """Take over an answer; whether its job is done by it. A lost job is put back, if nobody else works at it."""
        job = found.job
        if job.results is not None:
            return False
        if not found.lost:
            if len(found.results) != len(job.part):
                raise ValueError(f"{len(found.results)} results for {len(job.part)} items of work")
            job.results = found.results
            self._homes.update(dict.fromkeys(job.keys, found.member))
            return True
        job.losses += found.blames_job
        if job.losses >= self._settings.attempts:
            raise MachineError(
                f"executor: the same work ({job.ask}, item {job.places[0]}) was lost {job.losses} times with its "
                f"worker (executor.attempts). Published iterations are kept. The last time: {found.lost}"
            )
        if not job.holders:
            waiting.appendleft(job)
        return False


def _allowed(job: Job, opened: bool) -> float:
    """How many seconds a job may take longer than one call of an environment may.

    opened: whether the worker has its episodes open. Another one plays them from their start.
    """
    moves = [move for move in job.part if isinstance(move, Move)]
    # The last move of an episode may be followed by verdicts, which are made together and then asked for.
    calls = [move.timeout_s * ((1 if opened else len(move.actions) + 1) + 2 * move.last) for move in moves]
    return sum(calls) - max((move.timeout_s for move in moves), default=0.0)


def _bundles(places: Sequence[int], most: int) -> Iterator[tuple[int, ...]]:
    given = iter(places)
    while chosen := tuple(islice(given, most)):
        yield chosen
