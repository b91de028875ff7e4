"""Sides that take turns: each trains in a thread of its own, one iteration at a time, and only one of them runs.

A trainer owns its loop, so two of them cannot alternate in one thread. Here each one stops after every iteration until
the others have made theirs. A machine that becomes busy then hurts all of them.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel


@dataclass(frozen=True)
class Iteration:
    """One iteration of one side. counts: what was done.

    seconds: on the clock. cpu: CPU seconds of the process, in which only this side ran. sampling: those of drawing
    tokens.
    """

    seconds: float
    cpu: float
    sampling: float
    counts: Counter[str]

    @property
    def other(self) -> float:
        """CPU seconds of everything but sampling: rows, log-probs, the passes of the update, the trainer's own."""
        return self.cpu - self.sampling


class Turns:
    """Whose turn it is. names: the sides in their order."""

    def __init__(self, names: list[str]) -> None:
        self._waiting, self._change, self._stopped = list(names), threading.Condition(), False

    def wait(self, name: str) -> None:
        """Return when it is the turn of `name`. Raises `CancelledError` when a side failed."""
        with self._change:
            self._change.wait_for(lambda: self._stopped or self._waiting[0] == name)
            if self._stopped:
                raise CancelledError

    def next(self) -> None:
        """End the turn of the side that has it."""
        with self._change:
            self._waiting.append(self._waiting.pop(0))
            self._change.notify_all()

    def leave(self, name: str) -> None:
        """Take no further turn."""
        with self._change:
            self._waiting.remove(name)
            self._change.notify_all()

    def stop(self) -> None:
        """End all sides at their next turn."""
        with self._change:
            self._stopped = True
            self._change.notify_all()


class Clock:
    """Times the iterations of one side."""

    def __init__(self, turns: Turns, name: str) -> None:
        self.iterations: list[Iteration] = []
        self._turns, self._name = turns, name
        self._sampling = False
        self.start()

    def start(self) -> None:
        """Begin an iteration now."""
        self._sampled, self._counts = 0.0, Counter[str]()
        self._began, self._cpu = time.perf_counter(), time.process_time()

    def done(self) -> None:
        """End the iteration, let the others make theirs, and begin the next one."""
        seconds, cpu = time.perf_counter() - self._began, time.process_time() - self._cpu
        self.iterations.append(Iteration(seconds, cpu, self._sampled, self._counts))
        self._turns.next()
        self._turns.wait(self._name)
        self.start()

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """The time of the block is that of sampling."""
        began, self._sampling = time.process_time(), True
        try:
            yield
        finally:
            self._sampled, self._sampling = self._sampled + time.process_time() - began, False

    def count(self, **amounts: int) -> None:
        """Add to the counts of the iteration."""
        self._counts.update(amounts)

    def watch(self, model: PreTrainedModel) -> None:
        """Count the passes with gradients (`passes`) and the tokens, with padding, that are given to the model.

        The tokens: `taught` in these passes, `scored` in passes without gradients. Passes of sampling are left out.
        """

        def passed(_: torch.nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
            if not self._sampling:
                ids = named["input_ids"] if "input_ids" in named else args[0]
                if torch.is_grad_enabled():
                    self.count(passes=1, taught=ids.numel())
                else:
                    self.count(scored=ids.numel())

        model.base_model.register_forward_pre_hook(passed, with_kwargs=True)


Side = Callable[[Clock], None]
"""Trains, and calls `Clock.start` before the first iteration and `Clock.done` after each."""


def alternate(sides: Mapping[str, Side], threads: int) -> dict[str, list[Iteration]]:
    """Run every side, in turn. threads: of torch. Raises what a side raises.

    Ctrl-C and an error of a side end the others at their next turn. The side whose turn it is first ends its iteration,
    because a thread cannot be stopped from outside.
    """
    turns = Turns(list(sides))
    clocks = {name: Clock(turns, name) for name in sides}

    def run(name: str) -> None:
        try:
            turns.wait(name)
            torch.set_num_threads(threads)  # of this thread
            sides[name](clocks[name])
        except BaseException:
            turns.stop()
            raise
        turns.leave(name)

    with ThreadPoolExecutor(len(sides)) as pool:
        try:
            ends = [pool.submit(run, name) for name in sides]
            while wait(ends, timeout=1).not_done:
                pass  # a Ctrl-C that comes just before this thread blocks is seen only when it wakes
        except BaseException:
            turns.stop()
            raise
    errors = [error for end in ends if (error := end.exception()) is not None]
    for error in sorted(errors, key=lambda e: isinstance(e, CancelledError)):
        raise error
    return {name: clock.iterations for name, clock in clocks.items()}
