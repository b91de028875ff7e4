"""Where environments run: in this process, or, through the same protocol `Host`, in workers elsewhere.

What a host is asked holds everything that the answer depends on: an episode is its task, its seed and the actions so
far. So a question can be asked again, of another host, with the same answer. A host that has the episode open makes one
step. A host that has not plays it from its start.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Protocol

from rlanything.core.errors import MachineError, UserError
from rlanything.core.protocols import Environment, JudgesAtLimit, Prepares, TaskFamily, Verdict
from rlanything.core.returned.answers import require_observation, require_result, shown
from rlanything.core.types import Observation, Status, Task
from rlanything.core.unittests import Examination, Examiner, Prefetches, Tables

HERE = (UserError, MachineError)
"""Errors of a family that say that no episode can run here. They end the run."""
AGAIN_S = 5.0
"""Seconds after which a block whose time is over, and which goes on, is told so again."""
OTHERWISE = (
    "the environment is not deterministic: the same episode, played again, gave another observation. It cannot be "
    "placed on workers that may be lost (executor=inline)"
)

SHARED = (
    "environment() is the object of an episode that is still open; a fresh one is wanted for every episode"
)


@dataclass(frozen=True, slots=True)
class Move:
    """A question to an environment: what it says after these actions. No action: what it says first.

    episode: a name of the episode that no other episode open at the time has. seed: of the episode. seen: what the
    environment said before the last action. timeout_s: longest time of each call of environment code, in seconds.
    images: the names of the pictures that it showed with it. last: no further action is allowed.
    """

    episode: str
    task: Task
    seed: int
    actions: tuple[str, ...]
    seen: str
    timeout_s: float
    images: tuple[str, ...] = ()
    last: bool = False

    def follows(self, observation: Observation) -> bool:
        """Whether this is what the environment said and showed before the last action."""
        return observation.text == self.seen and observation.image_names == self.images

    @property
    def key(self) -> tuple[str, int]:
        """What names the episode."""
        return self.episode, self.seed


@dataclass(frozen=True, slots=True)
class Played:
    """The answer. status: None while the episode goes on. error: why it is over, where it crashed or timed out."""

    observation: Observation
    status: Status | None = None
    success: bool = False
    error: str = ""


class Host(Protocol):
    """Whoever runs environments. Every method returns one result for each item, in order."""

    def play(self, moves: Sequence[Move]) -> list[Played]:
        """Make the moves. Environment code that raises or hangs is an answer; its episode is over."""
        ...

    def close(self, moves: Sequence[Move]) -> list[str]:
        """Close the environments of episodes that went as these moves say; for each, its error or ''."""
        ...

    def clear(self) -> None:
        """Close what is still open. Errors are ignored."""
        ...

    def examine(self, work: Sequence[Examination]) -> list[Tables]:
        """See `core.unittests.Examiner`."""
        ...


@dataclass(slots=True)
class _Open:
    """An open environment, the last move that it made, and its answer."""

    environment: Environment
    move: Move
    played: Played


def begin(environment: Environment, task: Task, seed: int) -> Observation:
    """The first observation of an episode of a copy of the task.

    Raises what the environment raises, and what `require_observation` raises.
    """
    return require_observation(environment.reset(task.copy(), seed), "reset(task, seed)")


def opening(family: TaskFamily, task: Task, seed: int) -> Observation:
    """The first observation of an episode that is closed again. Raises what `begin` raises."""
    environment = family.environment()
    try:
        return begin(environment, task, seed)
    finally:
        environment.close()


class LocalHost:
    """Runs the environments of a family in this process. A worker has one as well."""

    def __init__(self, family: TaskFamily | Examiner) -> None:
        self.family: Any = family  # of which protocol it is decides what it can be asked
        self._open: dict[tuple[str, int], _Open] = {}

    def play(self, moves: Sequence[Move]) -> list[Played]:
        """See `Host`. Raises what `family.environment` raises: it says that no episode can run here."""
        if isinstance(self.family, Prepares):
            starting = [(move.task.copy(), move.seed) for move in moves if not move.actions]
            if starting:
                _ahead(lambda: self.family.prepare(starting))
        if isinstance(self.family, Prefetches):
            acting = [(move.task.copy(), move.actions[-1]) for move in moves if move.actions]
            if acting:
                _ahead(lambda: self.family.prefetch(acting))
        played = [self._play(move) for move in moves]
        if isinstance(self.family, JudgesAtLimit):
            self._judge(self.family, [move for move in moves if move.last])
            return [self._open[move.key].played for move in moves]
        return played

    def close(self, moves: Sequence[Move]) -> list[str]:
        """See `Host`. An episode that is not open here is played again, because closing it may fail."""
        return [self._close(move) for move in moves]

    def clear(self) -> None:
        """See `Host`."""
        while self._open:
            _, found = self._open.popitem()
            _guarded(found.environment.close, found.move.timeout_s)

    def examine(self, work: Sequence[Examination]) -> list[Tables]:
        """See `Host`. Raises `TypeError` for a family that runs no programs."""
        if not isinstance(self.family, Examiner):
            raise TypeError(f"{type(self.family).__name__} runs no programs")
        found: list[Tables] = self.family.examine(
            [(task.copy(), answers, replies) for task, answers, replies in work]
        )
        return found

    def _play(self, move: Move) -> Played:
        found = self._open.get(move.key)
        if found is not None and found.move.actions == move.actions:
            return found.played  # asked again: the answer was lost on its way
        if not move.actions:
            return self._begin(move).played
        found = self._at(move, move.actions[:-1])
        ended = found.played.status is Status.OK  # the episode that is asked about had not
        if ended or (found.played.status is None and not move.follows(found.played.observation)):
            found.played = Played(found.played.observation, Status.ENV_ERROR, error=OTHERWISE)
        if found.played.status is None:
            found.played = _step(
                found.environment, move.actions[-1], move.timeout_s, found.played.observation
            )
        found.move = move
        return found.played

    def _judge(self, family: JudgesAtLimit, moves: Sequence[Move]) -> None:
        """Judge the episodes that have reached their limit. One that is no success stays as it is: cut off."""
        reached = [found for move in moves if (found := self._open[move.key]).played.status is None]
        if not reached:
            return
        verdicts: list[Verdict] = []

        def ask() -> None:
            verdicts.extend(family.verdicts([found.environment for found in reached]))

        status, error = _guarded(ask, sum(found.move.timeout_s for found in reached), through=HERE)
        if status is not None:
            for found in reached:
                found.played = Played(found.played.observation, status, error=error)
            return
        for found, verdict in zip(reached, verdicts, strict=True):
            found.played = _judged(verdict, found.move.timeout_s, found.played.observation)

    def _at(self, move: Move, actions: tuple[str, ...]) -> _Open:
        """The open episode after `actions`. If it is elsewhere, or not open, it is played from its start."""
        found = self._open.get(move.key)
        if found is None or found.move.actions != actions:
            found = self._begin(move)
            for action in actions:
                if found.played.status is not None:
                    break
                seen = found.played.observation
                found.played = _step(found.environment, action, move.timeout_s, seen)
        return found

    def _begin(self, move: Move) -> _Open:
        """Start an episode, in the place of the one with its name."""
        before = self._open.pop(move.key, None)
        if before is not None:
            _guarded(before.environment.close, move.timeout_s)
        environment = self.family.environment()
        if not all(callable(getattr(environment, name, None)) for name in ("reset", "step", "close")):
            raise UserError(f"env: environment() is {shown(environment)}; reset, step and close are wanted")
        seen: list[Observation] = []

        def reset() -> None:
            if any(other.environment is environment for other in self._open.values()):
                raise ValueError(SHARED)
            seen.append(begin(environment, move.task, move.seed))

        status, error = _guarded(reset, move.timeout_s)
        played = Played(seen[0] if seen else Observation(""), status, error=error)
        self._open[move.key] = _Open(environment, move, played)
        return self._open[move.key]

    def _close(self, move: Move) -> str:
        environment = self._at(move, move.actions).environment
        del self._open[move.key]
        return _guarded(environment.close, move.timeout_s)[1]


def _step(environment: Environment, action: str, timeout_s: float, seen: Observation) -> Played:
    """One step. seen: the observation before it, which stays where the step fails."""
    made: list[Played] = []

    def step() -> None:
        result = require_result(environment.step(action), "step(action)")
        ended = Status.OK if result.done else None
        made.append(Played(result.observation, ended, result.done and result.success))

    status, error = _guarded(step, timeout_s)
    return Played(seen, status, error=error) if status is not None or not made else made[0]


def _judged(verdict: Verdict, timeout_s: float, seen: Observation) -> Played:
    """The end of an episode that is judged at its limit. seen: its last observation."""
    said: list[bool] = []
    status, error = _guarded(lambda: said.append(verdict.result()), timeout_s)
    if status is not None:
        return Played(seen, status, error=error)
    return Played(seen, Status.OK, True) if said == [True] else Played(seen)


def _guarded(
    call: Callable[[], None], timeout_s: float, through: tuple[type[Exception], ...] = ()
) -> tuple[Status | None, str]:
    """Call environment code. What it raises becomes a status and an error; (None, '') where it raises nothing.

    through: errors that are raised all the same.
    """
    try:
        with deadline(timeout_s):
            call()
    except through:
        raise
    except TimeoutError as error:
        return Status.TIMEOUT, str(error) or "no answer in time"  # a library may say nothing
    except (Exception, SystemExit) as error:  # an error of the environment's episode, not of the run
        return Status.ENV_ERROR, f"{type(error).__name__}: {error}"
    return None, ""


def _ahead(call: Callable[[], None]) -> None:
    """Let a family work ahead. What fails here fails again, in the episode that it is for.

    The family limits the time: it may do the whole work of many episodes here. Raises `HERE`.
    """
    try:
        call()
    except HERE:
        raise
    except (Exception, SystemExit):
        return


class _Expired(BaseException):
    """The time of a block is over."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` from the block after `seconds`.

    The block itself sees an exception that no `except OSError` or `except Exception` in it can take for its own, and
    sees it again where it goes on all the same. It uses SIGALRM, which works only in the main thread of a process. The
    loop and the workers run there. In another thread this limit does nothing, and only the environment's own time limit
    applies.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    running = True

    def expire(_signum: int, _frame: FrameType | None) -> None:
        if running:  # a block that ends at the last moment is not told after its end
            raise _Expired

    previous = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S)
    try:
        try:
            yield
        finally:
            running = False
    except _Expired:
        raise TimeoutError(f"no answer within {seconds:g} s") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)
