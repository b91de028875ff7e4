"""Processes side by side, one thread each, that never outlive the one that started them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from rlanything.core.errors import MachineError


@contextmanager
def pool(count: int) -> Iterator[ProcessPoolExecutor]:
    """`count` fresh processes. When the block fails, they are stopped; when this process dies, they die.

    Raises `MachineError` when one of them is killed.
    """
    os.environ["OMP_NUM_THREADS"] = "1"
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, mp_context=context, initializer=die_with_parent) as executor:
        try:
            yield executor
        except BaseException as error:
            executor.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                child.terminate()
            if isinstance(error, BrokenProcessPool):
                raise MachineError(
                    "a worker process was killed, perhaps because memory ran out (fewer at once: train.workers). What "
                    "is published stays; the same command goes on from there"
                ) from None
            raise


def die_with_parent() -> None:
    """Kill this process the moment its parent is gone: an orphan would go on writing beside a restarted run."""
    parent = multiprocessing.parent_process()
    if parent is None:
        raise ValueError("only a process that multiprocessing started has a parent to watch")

    def watch() -> None:
        parent.join()  # waits for the end of a pipe that only the parent holds open
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True, name="parent").start()
