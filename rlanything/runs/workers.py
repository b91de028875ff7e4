"""Runs function calls in parallel, each in its own process with one thread. A worker ends when its parent ends.

On Linux they are forked from a server process, which has imported what takes seconds to import and does nothing else.
The processes share no queue and no lock, so none waits for a killed one. Workers that are no longer needed get SIGKILL:
a library may handle SIGTERM and continue (Lightning does). Their files are written so that a kill does no damage.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any

from rlanything.core.errors import MachineError
from rlanything.core.printable import signal_name

SPAWN = multiprocessing.get_context("spawn")
"""Starts processes afresh. They are not forked from this one: a fork has the locks of threads that it has not."""
HEAVY = ("lightning.pytorch", "transformers.modeling_utils")
"""What the server imports: seconds for each process otherwise. It loads no model and touches no device."""


@dataclass(frozen=True)
class Starter:
    """What starts processes: the server, or this process itself."""

    context: SpawnContext | ForkServerContext
    variables: frozenset[str] = frozenset()
    """Names of the environment variables that the server was given."""


class Surroundings:
    """What a process has from the one that asks for it, and not from the server: variables, and where output goes."""

    def __init__(self, starter: Starter) -> None:
        self._variables = dict(os.environ)
        self._gone = starter.variables - self._variables.keys()  # and not what imports have set in the server

    def __getstate__(self) -> tuple[dict[str, str], frozenset[str], list[Any]]:
        return self._variables, self._gone, [DupFd(number) for number in (1, 2)]

    def __setstate__(self, state: tuple[dict[str, str], frozenset[str], list[Any]]) -> None:
        self._variables, self._gone, files = state
        os.environ.update(self._variables)
        for name in self._gone:
            os.environ.pop(name, None)
        for number, file in zip((1, 2), files, strict=True):
            found = file.detach()
            if found != number:
                os.dup2(found, number)
                os.close(found)  # a pipe would stay open after `redirect_stderr`


class Child:
    """A call in a process of its own, with the working folder, environment variables and output of this one."""

    def __init__(self, starter: Starter, function: Callable[..., Any], call: Sequence[Any]) -> None:
        self.answer, theirs = starter.context.Pipe(duplex=False)
        self._process = starter.context.Process(
            target=_work, args=(Surroundings(starter), theirs, function, call)
        )
        self._process.start()
        theirs.close()  # so that the pipe closes when the process ends

    def result(self) -> Any:
        """Wait for the call and return its value. Raises what the call raised.

        Raises `MachineError` when the process ended without an answer, `KeyboardInterrupt` after Ctrl-C.
        """
        error, value = self._received
        if error is not None:
            raise error
        self._process.join()
        return value

    @cached_property
    def _received(self) -> tuple[BaseException | None, Any]:
        """(error, value) of the call; error is None when it succeeded."""
        try:
            error, value = self.answer.recv()
        except (EOFError, OSError):  # OSError: it was killed within its answer
            return self._lost(), None
        return error, value

    def kill(self) -> None:
        """End the process now, unless it has ended."""
        if self._process.is_alive():  # the server has reaped it otherwise, and its number may be another's
            self._process.kill()
        self._process.join()

    def _lost(self) -> BaseException:
        """The error for a process that ended without an answer."""
        self._process.join()
        code = self._process.exitcode or 0
        if code == -signal.SIGINT:  # Ctrl-C, which reaches every process at once
            return KeyboardInterrupt()
        if code >= 0:
            return MachineError(
                f"a worker process ended with exit code {code} before it answered; its output says why"
            )
        return MachineError(
            f"a worker process was killed ({signal_name(-code)}), perhaps because memory ran out (lower "
            "train.workers). Finished work is kept; the same command resumes from it"
        )


@contextmanager
def beside(function: Callable[..., Any], *call: Any) -> Iterator[Child]:
    """Run a call in another process during the block. The process is killed when the block ends."""
    starter = await_starter()
    with ExitStack() as stack:
        with interrupted_later():
            child = Child(starter, function, call)
            stack.callback(child.kill)
        yield child


@contextmanager
def conversing(function: Callable[..., Any], *call: Any) -> Iterator[tuple[Child, Connection]]:
    """As `beside`, with a connection between the block and the call, whose first argument is the other end."""
    ours, theirs = await_starter().context.Pipe()
    with ours, beside(function, theirs, *call) as child:
        theirs.close()  # so that the connection ends with the process
        yield child, ours


def run_all(function: Callable[..., Any], calls: Sequence[Sequence[Any]], count: int) -> list[Any]:
    """The results of `function` for all calls, in their order. At most `count` calls run at once.

    The first failure kills all other processes and is raised (see `Child.result`).
    """
    results: list[Any] = [None] * len(calls)
    waiting = list(enumerate(calls))[::-1]
    running: dict[Any, tuple[int, Child]] = {}  # by the connection that receives the answer
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


@cache
def await_starter() -> Starter:
    """What `begin_starter` gives, after the server has imported everything; Ctrl-C ends the wait."""
    starter = begin_starter()
    if starter.context is not SPAWN:
        first = starter.context.Process(target=int)
        first.start()
        first.join()
    return starter


@cache
def begin_starter() -> Starter:
    """On Linux the server, which then imports for seconds. Whoever needs it later may call this now.

    Elsewhere processes are started afresh: macOS has libraries that do not survive a fork. So they are where no socket
    can be made for the server, as in a TMPDIR whose name has more than about 80 characters."""
    os.environ["OMP_NUM_THREADS"] = "1"  # libraries read it when they are imported
    if sys.platform != "linux":
        return Starter(SPAWN)
    multiprocessing.set_forkserver_preload(list(HEAVY))
    given = frozenset(os.environ)
    try:
        with interrupted_later():
            forkserver.ensure_running()
    except OSError:
        return Starter(SPAWN)
    return Starter(multiprocessing.get_context("forkserver"), given)


@contextmanager
def interrupted_later() -> Iterator[None]:
    """Delay Ctrl-C until the block ends. A process that starts in the block ignores Ctrl-C until it unblocks SIGINT."""
    resource_tracker.ensure_running()  # otherwise it starts with the first process, and unblocks SIGINT
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def side_by_side(function: Callable[..., Any], calls: Sequence[Sequence[Any]], workers: int) -> list[Any]:
    """The results of `function` for all calls, at most `workers` at once.

    With one worker the calls run in this process.
    """
    count = min(workers, len(calls))
    return [function(*call) for call in calls] if count <= 1 else run_all(function, calls, count)


def _work(_: Surroundings, answer: Connection, function: Callable[..., Any], call: Sequence[Any]) -> None:
    """The main function of a worker process: make the call and send (error, value)."""
    die_with_parent()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends silently: the parent reports it
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    error, value = None, None
    try:
        value = function(*call)
    except BaseException as raised:
        error = portable(raised, "in a worker process")
    answer.send((error, value))


def portable(error: BaseException, where: str) -> BaseException:
    """The error in a form that can be pickled, with its traceback as a note. where: the words before the traceback."""
    told = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(told)
    error.add_note(f"{where}:\n{told}")
    return error


def die_with_parent() -> None:
    """Kill this process when its parent ends. An orphan would write beside a restarted run."""
    parent = multiprocessing.parent_process()
    if parent is None:
        raise ValueError("only a process that multiprocessing started has a parent to watch")

    def watch() -> None:
        parent.join()  # waits for the end of a pipe that only the parent holds open
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True, name="parent").start()


def redirect_stderr(path: Path) -> None:
    """Send what this process, and the programs that it starts, write to stdout and stderr into a file."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(file, number)
    os.close(file)
