"""Calls side by side, each in a process of its own with one thread, that never outlive the one that started them.

Nothing is shared between the processes, no queue and no lock: so whichever is killed, no other waits for it. Those that
are no longer needed are killed, not asked: a library may handle SIGTERM and go on (Lightning does), and whatever they
write survives a kill.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

from rlanything.core.errors import MachineError

_SPAWN = multiprocessing.get_context("spawn")


class Child:
    """A call in a fresh process."""

    def __init__(self, function: Callable[..., Any], call: Sequence[Any]) -> None:
        os.environ["OMP_NUM_THREADS"] = "1"
        self.answer, theirs = _SPAWN.Pipe(duplex=False)
        self._process = _SPAWN.Process(target=_work, args=(theirs, function, call))
        self._process.start()
        theirs.close()  # so that the end of the process is the end of the pipe

    def result(self) -> Any:
        """Wait for what the call returns. Raises what it raised, or `MachineError` when the process was killed."""
        error, value = self._received
        if error is not None:
            raise error
        self._process.join()
        return value

    def check(self) -> None:
        """Raise what `result` would raise, if that is known by now."""
        if self.answer.poll():
            self.result()

    @cached_property
    def _received(self) -> tuple[BaseException | None, Any]:
        """(error, value), whichever the call ended with."""
        try:
            error, value = self.answer.recv()
        except EOFError:
            return self._lost(), None
        return error, value

    def kill(self) -> None:
        """End the process now, unless it has ended."""
        self._process.kill()
        self._process.join()

    def _lost(self) -> BaseException:
        """Why the process ended without an answer."""
        self._process.join()
        code = self._process.exitcode or 0
        if code == -signal.SIGINT:  # Ctrl-C, which reaches every process at once
            return KeyboardInterrupt()
        if code >= 0:
            return MachineError(
                f"a worker process ended with exit code {code} before it answered; its output says why"
            )
        return MachineError(
            f"a worker process was killed ({signal.Signals(-code).name}), perhaps because memory ran out (fewer at "
            "once: train.workers). What is published stays; the same command goes on from there"
        )


@contextmanager
def beside(function: Callable[..., Any], *call: Any) -> Iterator[Child]:
    """A call in a process that is gone when the block ends, however it ends."""
    with ExitStack() as stack:
        with _interrupted_later():
            child = Child(function, call)
            stack.callback(child.kill)
        yield child


def run_all(function: Callable[..., Any], calls: Sequence[Sequence[Any]], count: int) -> list[Any]:
    """What `function` returns for each call, in their order; at most `count` run at once.

    The first failure ends all of them at once and is raised, see `Child.result`.
    """
    results: list[Any] = [None] * len(calls)
    waiting = list(enumerate(calls))[::-1]
    running: dict[Any, tuple[int, Child]] = {}  # by the end of the pipe that a process answers at
    with ExitStack() as stack:
        while waiting or running:
            while waiting and len(running) < count:
                number, call = waiting.pop()
                child = stack.enter_context(beside(function, *call))
                running[child.answer] = (number, child)
            for answer in wait(list(running)):
                number, child = running.pop(answer)
                results[number] = child.result()
    return results


@contextmanager
def _interrupted_later() -> Iterator[None]:
    """Ctrl-C waits for the end of the block; a process that starts in it can be interrupted only when it lets it."""
    resource_tracker.ensure_running()  # it would be started with the first process, and lift the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def side_by_side(function: Callable[..., Any], calls: Sequence[Sequence[Any]], workers: int) -> list[Any]:
    """What `function` returns for each call, at most `workers` at once; in this process when one is enough."""
    count = min(workers, len(calls))
    return [function(*call) for call in calls] if count <= 1 else run_all(function, calls, count)


def _work(answer: Connection, function: Callable[..., Any], call: Sequence[Any]) -> None:
    """The life of a process: one call, one answer (error, value)."""
    _die_with_parent()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends without a word: the one that started it tells
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    error, value = None, None
    try:
        value = function(*call)
    except BaseException as raised:
        error = _portable(raised)
    answer.send((error, value))


def _portable(error: BaseException) -> BaseException:
    """The error as it can cross to another process, with where it came from."""
    told = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(told)
    error.add_note(f"in a worker process:\n{told}")
    return error


def _die_with_parent() -> None:
    """Kill this process the moment its parent is gone: an orphan would go on writing beside a restarted run."""
    parent = multiprocessing.parent_process()
    if parent is None:
        raise ValueError("only a process that multiprocessing started has a parent to watch")

    def watch() -> None:
        parent.join()  # waits for the end of a pipe that only the parent holds open
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True, name="parent").start()
