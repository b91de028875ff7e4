"""The pool of boxes: `Sandbox.judge` judges a batch of jobs in one thread."""

from __future__ import annotations

import selectors
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from envs.coding.sandbox.backends.box import Backend
from envs.coding.sandbox.session import Session
from envs.coding.sandbox.types import MOST_WORKERS, Job, JobResult, Limits
from envs.coding.sandbox.worker import BoxLostError, Worker


class Sandbox:
    """A pool of boxes, started by the constructor and kept until `close`. A context manager.

    A box that dies is replaced, and its test is tried again. Boxes die with the thread that started them, so that
    thread must live as long as the sandbox.
    """

    def __init__(self, backend: Backend, workers: int, limits: Limits) -> None:
        if isinstance(workers, bool) or not isinstance(workers, int) or not 1 <= workers <= MOST_WORKERS:
            raise ValueError(f"workers: {workers!r} is not a whole number from 1 to {MOST_WORKERS}")
        self.limits = limits
        self._backend, self._lock = backend, threading.Lock()
        self._workers = [Worker(backend) for _ in range(workers)]
        try:
            for worker in self._workers:
                worker.start()
            while not all(worker.greeted for worker in self._workers):
                self._turn([worker for worker in self._workers if not worker.greeted])
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all boxes. May be called twice."""
        for worker in self._workers:
            worker.close()
        self._backend.close()

    @property
    def replaced(self) -> int:
        """Number of boxes that were replaced so far."""
        return sum(worker.replaced for worker in self._workers)

    def judge(
        self, jobs: Sequence[Job], progress: Callable[[int, int], None] | None = None
    ) -> list[JobResult]:
        """The result of every job, in order. `progress` is called with (jobs done, jobs in all).

        Raises `ValueError` for a job whose limits are above the sandbox's, before anything runs, and `SandboxError`
        when boxes no longer start.
        """
        sessions = [Session(job, self.limits) for job in jobs]
        with self._lock:
            try:
                self._work(deque(sessions), len(sessions), progress)
            finally:
                for worker in self._workers:
                    self._drop(worker)
        return [session.result() for session in sessions]

    def _work(self, waiting: deque[Session], total: int, progress: Callable[[int, int], None] | None) -> None:
        done = 0
        while done < total:
            busy = [worker for worker in self._workers if self._assign(worker, waiting)]
            if total - len(waiting) - len(busy) > done:
                done = total - len(waiting) - len(busy)
                if progress is not None:
                    progress(done, total)
            if busy:
                self._turn(busy)

    @staticmethod
    def _assign(worker: Worker, waiting: deque[Session]) -> bool:
        """Give an idle worker the next session; whether it has one now."""
        if worker.session is None and waiting:
            worker.take(waiting.popleft())
        return worker.session is not None

    @staticmethod
    def _drop(worker: Worker) -> None:
        """Free a worker whose batch was interrupted; its box is ended."""
        if worker.session is not None:
            worker.session = None
            worker.close()

    @staticmethod
    def _turn(workers: Sequence[Worker]) -> None:
        """Wait until a box can be read or written, or is overdue, and handle it."""
        with selectors.DefaultSelector() as selector:
            for worker in workers:
                _watch(selector, worker)
            patience = min(worker.overdue for worker in workers) - time.monotonic()
            ready = selector.select(max(0.0, patience))
        for key, events in ready:
            worker = key.data
            try:
                if events & selectors.EVENT_WRITE:
                    worker.write()
                if events & selectors.EVENT_READ:
                    worker.read()
            except BoxLostError as error:
                worker.replace(str(error))
        for worker in workers:
            if worker.overdue < time.monotonic():
                worker.replace("the box did not answer in time")


def _watch(selector: selectors.BaseSelector, worker: Worker) -> None:
    reader, writer = worker.ends()
    if writer is not None and writer != reader:
        selector.register(writer, selectors.EVENT_WRITE, worker)
    both = selectors.EVENT_READ | (selectors.EVENT_WRITE if writer == reader else 0)
    selector.register(reader, both, worker)
