"""The workers of a run: they are started, watched, and replaced when they are lost. What they do: `dispatcher`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rlanything.config import ExecutorConfig
from rlanything.core.errors import ConfigError, MachineError
from rlanything.core.printable import safe
from rlanything.runs.executors.pool import Hand, LostError, Pool
from rlanything.runs.executors.worker import Greeting, Order

FIRST_S, LONGEST_S = 5.0, 600.0
"""Seconds before a worker that did not start is tried again while others work; they double with every such worker."""
MOST_DOUBLINGS = 32
"""More change nothing, and a power of 2 that no float holds would end the run."""


@dataclass(eq=False)
class Job:
    """A part of the work. places: the numbers of its items. keys: the names of their episodes; None: they have none."""

    ask: str
    places: tuple[int, ...]
    part: tuple[Any, ...]
    keys: tuple[Any, ...]
    results: list[Any] | None = None
    losses: int = 0
    holders: list[Member] = field(default_factory=list)
    """Who works at it now."""


@dataclass(eq=False)
class Member:
    """A worker, and what it does. since: when it was started, or given its job.

    allowed: seconds that its job may take longer than one call. proved: whether it has answered an order since `rest`.
    """

    hand: Hand
    since: float
    job: Job | None = None
    allowed: float = 0.0
    proved: bool = True

    @property
    def idle(self) -> bool:
        """Whether it can be given a job."""
        return self.job is None and self.hand.greeting is not None

    def for_longer_than(self, seconds: float) -> bool:
        """Whether it has not answered for so long."""
        return not self.idle and time.monotonic() - self.since > seconds


@dataclass(frozen=True, slots=True)
class Finished:
    """A job that a worker has answered, or lost. lost: why; '' where it has answered with `results`."""

    member: Member
    job: Job
    results: list[Any]
    lost: str = ""

    @property
    def blames_job(self) -> bool:
        """Whether the job may have cost the worker. One that stood idle may have been gone before it was given."""
        return self.member.proved


class Crew:
    """`settings.workers` workers of one pool. The answers of a worker with other code are refused."""

    def __init__(self, pool: Pool, settings: ExecutorConfig, code: str, say: Callable[[str], None]) -> None:
        self.members: list[Member] = []
        self._pool, self._settings, self._code, self._say = pool, settings, code, say
        self._failed_starts = 0
        self._due: list[float] = []
        """When to start the workers that are missing."""

    def start(self) -> None:
        """Start all workers, and wait until one has greeted; the others may come later.

        Raises `MachineError` when none has started in `executor.start_s`, and `ConfigError` for other code.
        """
        while len(self.members) < self._settings.workers:
            self._add()
        while not any(member.hand.greeting for member in self.members):
            for _ in self.finished(1.0):
                pass  # nobody has a job yet

    def give(self, member: Member, job: Job, epoch: int, allowed: float = 0.0) -> None:
        """Give an idle worker a job. It is found to be lost later, where it is. allowed: see `Member`."""
        member.job, member.since, member.allowed = job, time.monotonic(), allowed
        job.holders.append(member)
        with suppress(LostError):  # `receive` says it again
            member.hand.ask(Order(epoch, job.ask, job.part))

    def finished(self, timeout_s: float) -> Iterator[Finished]:
        """Jobs that were answered or lost; waits for the first one, for at most `timeout_s`.

        A lost worker is replaced. Raises what an order raised, and `MachineError` when workers do not start.
        """
        self._add_due()
        busy = [member.hand for member in self.members if not member.idle]
        for hand in self._pool.wait(busy, timeout_s):
            member = next(member for member in self.members if member.hand is hand)
            found = self._received(member)
            if found is not None:
                yield found
        for member in list(self.members):
            limit = (
                self._settings.timeout_s + member.allowed if member.hand.greeting else self._settings.start_s
            )
            if member.for_longer_than(limit):
                found = self._lost(member, f"it has not answered for {limit:g} s, and was ended")
                if found is not None:
                    yield found

    def rest(self) -> None:
        """All workers have been idle for a while: who of them is gone is found when they are asked."""
        for member in self.members:
            member.proved = member.hand.greeting is None

    def close(self) -> None:
        """End all workers."""
        self._due.clear()
        while self.members:
            self.members.pop().hand.kill()

    def _add(self) -> None:
        self.members.append(Member(self._pool.start(), time.monotonic()))

    def _add_due(self) -> None:
        """Start what is due, and everything that is missing where no worker is left."""
        now = time.monotonic()
        late = [when for when in self._due if self.members and when > now]
        for _ in range(len(self._due) - len(late)):
            self._add()
        self._due = late

    def _received(self, member: Member) -> Finished | None:
        try:
            error, value = member.hand.receive()
        except LostError as lost:
            return self._lost(member, str(lost))
        job, member.job = member.job, None
        if job is not None:
            job.holders.remove(member)
            member.proved = True
        if error is not None:  # raised by the order: the worker itself is well, and can be given the next one
            raise error
        if job is None:
            self._greeted(member, value)
            return None
        return Finished(member, job, value)

    def _greeted(self, member: Member, greeting: Greeting) -> None:
        if greeting.code != self._code:
            raise ConfigError(
                f"executor: the worker {greeting.pid} {greeting.node} has another version of Python, of rlanything, or "
                "of the environment than this process. Results of both together would be nobody's: use the same image "
                "or the same checkout on all nodes"
            )
        member.hand.greeting, self._failed_starts = greeting, 0

    def _lost(self, member: Member, cause: str) -> Finished | None:
        """A worker is gone: say why, see to another one, and return its job."""
        words = member.hand.last_words()
        told = f"{cause}\n{_quoted(words)}" if words else f"{cause} (it left no log that can be read)"
        member.hand.kill()
        self.members.remove(member)
        if member.hand.greeting is None:
            self._not_started(told)
            return None  # so it had no job
        self._say(f"executor: a worker was lost, its work is done again: {told}")
        self._add()
        job = member.job
        if job is None:
            return None
        job.holders.remove(member)
        return Finished(member, job, [], told)

    def _not_started(self, told: str) -> None:
        """Try a worker again: at once where no other one works, and later and later where the others go on.

        Raises `MachineError` where none works, and `executor.attempts` in a row did not start.
        """
        self._failed_starts += 1
        working = sum(member.hand.greeting is not None for member in self.members)
        if not working and self._failed_starts >= self._settings.attempts:
            raise MachineError(
                f"executor: {self._failed_starts} workers in a row did not start ({self._pool.room()}). The last "
                f"one: {told}"
            )
        if not working:
            self._say(f"executor: a worker has not started, and is tried again ({self._pool.room()}): {told}")
            self._add()
            return
        wait = min(LONGEST_S, FIRST_S * 2 ** min(self._failed_starts - 1, MOST_DOUBLINGS))
        self._due.append(time.monotonic() + wait)
        self._say(
            f"executor: a worker has not started; {working} of {self._settings.workers} work, and another one is tried "
            f"in {wait:g} s ({self._pool.room()}): {told}"
        )


def _quoted(log: str) -> str:
    """Lines that environment code may have written, with nothing in them that moves a terminal's cursor."""
    return "\n".join(f"    | {safe(line)}" for line in log.splitlines())
