"""Workers as actors of Ray, on any node of a cluster. Ray places them and carries orders; it repeats nothing by itself.

Whether an order was answered is known here only by its answer: Ray may report a failure after a success. So Ray's own
restarts and retries are off, and `dispatcher` gives an order again.
"""

from __future__ import annotations

import faulthandler
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlanything.core.printable import one_line
from rlanything.runs.executors.pool import LostError, tail
from rlanything.runs.executors.worker import Answer, Greeting, Maker, Order, Worker
from rlanything.runs.workers import portable

MOST = 1000
"""How many characters of Ray's words about a lost worker are shown."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
LOG_S = 10.0
"""Longest wait for the log of a lost worker."""


class Actor:
    """What runs in the actor's process."""

    def __init__(self, make: Maker) -> None:
        self._make = make
        self._worker: Worker | None = None

    def greet(self) -> Answer:
        """Start the worker."""
        import ray

        faulthandler.enable()
        node = f"on node {ray.get_runtime_context().get_node_id()}"
        try:
            self._worker = self._make(node)
        except Exception as error:
            return portable(error, f"in a worker that starts {node}"), None
        return None, self._worker.greeting

    def answer(self, order: Order) -> Answer:
        """See `Worker`."""
        assert self._worker is not None
        return self._worker.answer(order)


class ActorHand:
    """A worker in an actor."""

    def __init__(self, ray: Any, make: Maker, cpus: float) -> None:
        self.greeting: Greeting | None = None
        self._ray = ray
        placed = {"num_cpus": cpus, "max_restarts": 0, "max_task_retries": 0, "scheduling_strategy": "SPREAD"}
        self._actor = ray.remote(Actor).options(**placed).remote(make)
        self.pending = self._actor.greet.remote()

    def ask(self, order: Order) -> None:
        """See `Hand`."""
        self.pending = self._actor.answer.remote(order)

    def receive(self) -> Answer:
        """See `Hand`."""
        try:
            answer: Answer = self._ray.get(self.pending)
        except self._ray.exceptions.RayError as error:
            raise LostError(_cause(error)) from None
        return answer

    def kill(self) -> None:
        """See `Hand`."""
        self._ray.kill(self._actor, no_restart=True)

    def last_words(self) -> str:
        """See `Hand`. A task on the worker's node reads its log; nothing can be read where the node is gone."""
        if self.greeting is None or not self.greeting.log:
            return ""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        there = NodeAffinitySchedulingStrategy(self.greeting.node.rpartition(" ")[2], soft=False)
        read = self._ray.remote(tail).options(num_cpus=0, max_retries=0, scheduling_strategy=there)
        try:
            words: str = self._ray.get(read.remote(Path(self.greeting.log)), timeout=LOG_S)
        except self._ray.exceptions.RayError:
            return ""
        return words


class ActorPool:
    """Starts actors, spread over the nodes."""

    def __init__(self, ray: Any, make: Maker, cpus: float) -> None:
        self._ray, self._make, self._cpus = ray, make, cpus

    def start(self) -> ActorHand:
        """See `Pool`."""
        return ActorHand(self._ray, self._make, self._cpus)

    def wait(self, hands: Sequence[ActorHand], timeout_s: float) -> list[ActorHand]:
        """See `Pool`."""
        pending = [hand.pending for hand in hands]
        first, _ = self._ray.wait(pending, timeout=timeout_s)
        if first:
            first, _ = self._ray.wait(pending, num_returns=len(pending), timeout=0)
        return [hand for hand in hands if hand.pending in first]

    def room(self) -> str:
        """See `Pool`."""
        has, free = self._ray.cluster_resources(), self._ray.available_resources()
        return (
            f"each asks for executor.cpus = {self._cpus:g}; the cluster has {has.get('CPU', 0):g} CPUs, of which "
            f"{free.get('CPU', 0):g} are free"
        )


def _cause(error: Exception) -> str:
    """Ray's own words, in one line."""
    plain = _COLOUR.sub("", str(error))
    return f"{type(error).__name__}: {one_line(plain)[:MOST]}"
