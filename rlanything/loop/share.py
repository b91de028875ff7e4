"""Rollouts, votes and rewrites divided among the processes of a run. Each process does a share and gets all results.

Every sample has its own seed (`core.seeds`), so any process can draw it. The results are exchanged and not computed in
every process, because processors may round differently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch.distributed as processes

Work = TypeVar("Work")
Result = TypeVar("Result")


def shared(work: Sequence[Work], do: Callable[[Sequence[Work]], list[Result]]) -> list[Result]:
    """`do(work)`: one result for each item, in order. Under torchrun, process r of n does items r, r + n, r + 2n, ...

    All processes must call this with the same work. Raises `ValueError` when `do` returns another number of
    results.
    """
    if not (processes.is_available() and processes.is_initialized()):
        return _checked(do(work), len(work))
    rank, world = processes.get_rank(), processes.get_world_size()
    mine = _checked(do(work[rank::world]), len(work[rank::world]))
    parts: list[list[Result]] = [[] for _ in range(world)]
    processes.all_gather_object(parts, mine)
    return [parts[k % world][k // world] for k in range(len(work))]


def _checked(results: list[Result], expected: int) -> list[Result]:
    if len(results) != expected:
        raise ValueError(f"{len(results)} results for {expected} items of work")
    return results
