"""Workers as processes of this machine. They end with the process that started them."""

from __future__ import annotations

import faulthandler
import signal
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from rlanything.core.printable import ended
from rlanything.runs.executors.pool import LostError, tail
from rlanything.runs.executors.worker import Answer, Greeting, Maker, Order
from rlanything.runs.workers import SPAWN, die_with_parent, interrupted_later, portable, redirect_stderr

SMALL = 1 << 15
"""Bytes of an order that a connection takes, whether or not the worker reads them."""


class ProcessHand:
    """A worker in a process of this machine."""

    def __init__(self, make: Maker, log: Path) -> None:
        self.greeting: Greeting | None = None
        self._log = log
        self._sender: Thread | None = None
        self.connection, theirs = SPAWN.Pipe()
        self._process = SPAWN.Process(target=_serve, args=(theirs, make, log))
        with interrupted_later():
            self._process.start()
        theirs.close()  # so that the connection closes when the process ends

    def ask(self, order: Order) -> None:
        """See `Hand`. A long order is sent beside: a worker that was stopped reads nothing, and nobody waits for it."""
        data = ForkingPickler.dumps(order)
        if len(data) > SMALL:
            self._sender = Thread(target=self._send, args=(data,), daemon=True, name="order")
            self._sender.start()
            return
        try:
            self.connection.send_bytes(data)
        except OSError:
            raise LostError(self._cause()) from None

    def receive(self) -> Answer:
        """See `Hand`."""
        try:
            answer: Answer = self.connection.recv()
        except (EOFError, OSError):
            raise LostError(self._cause()) from None
        return answer

    def kill(self) -> None:
        """See `Hand`."""
        self._process.kill()
        self._process.join()
        if self._sender is not None:
            self._sender.join()  # it ends with the process that should read
        self.connection.close()

    def last_words(self) -> str:
        """See `Hand`."""
        return tail(self._log)

    def _send(self, data: memoryview) -> None:
        with suppress(OSError):  # `receive` says why
            self.connection.send_bytes(data)

    def _cause(self) -> str:
        """Why the process has ended."""
        self._process.join()
        return f"process {self._process.pid} {ended(self._process.exitcode or 0)}"


class ProcessPool:
    """Starts processes. Their output goes into files of a temporary folder."""

    def __init__(self, make: Maker) -> None:
        self._make = make
        self._folder = TemporaryDirectory(prefix="rlanything-workers-", ignore_cleanup_errors=True)
        self._started = 0

    def start(self) -> ProcessHand:
        """See `Pool`."""
        self._started += 1
        return ProcessHand(self._make, Path(self._folder.name) / f"{self._started}.log")

    def wait(self, hands: Sequence[ProcessHand], timeout_s: float) -> list[ProcessHand]:
        """See `Pool`."""
        ready = wait([hand.connection for hand in hands], timeout_s)
        return [hand for hand in hands if hand.connection in ready]

    def room(self) -> str:
        """See `Pool`."""
        return "processes of this machine"

    def close(self) -> None:
        """Remove the files."""
        self._folder.cleanup()


def _serve(connection: Connection, make: Maker, log: Path) -> None:
    """The main function of a worker process: greet, then answer orders until the connection closes."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the parent ends this one
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    redirect_stderr(log)
    faulthandler.enable()
    try:
        worker = make()
    except Exception as error:
        connection.send((portable(error, "in a worker that starts"), None))
        return
    connection.send((None, worker.greeting))
    with suppress(EOFError):
        while True:
            connection.send(worker.answer(connection.recv()))
