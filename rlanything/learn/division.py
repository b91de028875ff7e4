"""How the processes of a run divide the micro-batches of a pass over rows, and exchange what they computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lightning.pytorch import Trainer

from rlanything.learn.packing import Row

Group = Sequence[Row]
"""A micro-batch. An empty one stands for a pass that another process has and this one has not."""


def share(groups: Sequence[Group], trainer: Trainer) -> list[Group]:
    """This process's micro-batches. Empty ones are added, so that every process has equally many."""
    padded = [*groups, *([] for _ in range(-len(groups) % trainer.world_size))]
    return padded[trainer.global_rank :: trainer.world_size]


def computed(
    groups: Sequence[Group], trainer: Trainer, do: Callable[[Group], list[float]]
) -> list[list[float]]:
    """`do` of every micro-batch, in order. The processes divide them, and each one gets all values.

    Every process must call it with the same micro-batches. `do` is also called with empty ones, whose values nobody
    needs.
    """
    mine = [do(group) for group in share(groups, trainer)]
    if trainer.world_size == 1:
        return mine
    import torch.distributed as processes

    parts: list[list[list[float]]] = [[] for _ in range(trainer.world_size)]
    processes.all_gather_object(parts, mine)
    return [parts[k % len(parts)][k // len(parts)] for k in range(len(groups))]
