"""How the processes of a run divide the micro-batches of a pass over rows, and exchange what they computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lightning.pytorch import Trainer

from rlanything.learn.packing import Row

Group = Sequence[Row]
"""A micro-batch. An empty one stands for a pass that another process has and this one has not."""


def share(groups: Sequence[Group], trainer: Trainer, blank: Row | None) -> list[Group]:
    """This process's micro-batches. Empty ones are added, so that every process has equally many.

    blank: of a model that reads pictures, a row that shows one and has no target. A micro-batch without pictures gets
    it where another process has one with pictures at the same time. The processes exchange weights and gradients also
    of what reads pictures, so all of them must pass through it, or none.
    """
    world, rank = trainer.world_size, trainer.global_rank
    padded = [*groups, *([] for _ in range(-len(groups) % world))]
    at_once = [padded[k : k + world] for k in range(0, len(padded), world)]
    seen = [any(_shows(group) for group in turn) for turn in at_once]
    return [
        [*turn[rank], blank] if blank and shown and not _shows(turn[rank]) else turn[rank]
        for turn, shown in zip(at_once, seen, strict=True)
    ]


def _shows(group: Group) -> bool:
    return any(row.images for row in group)


def computed(
    groups: Sequence[Group],
    trainer: Trainer,
    do: Callable[[Group], list[float]],
    blank: Row | None = None,
) -> list[list[float]]:
    """`do` of every micro-batch, in order. The processes divide them, and each one gets all values.

    Every process must call it with the same micro-batches. `do` is also called with empty ones, whose values nobody
    needs, and with `blank` as `share` adds it.
    """
    mine = [do(group) for group in share(groups, trainer, blank)]
    if trainer.world_size == 1:
        return mine
    import torch.distributed as processes

    parts: list[list[list[float]]] = [[] for _ in range(trainer.world_size)]
    processes.all_gather_object(parts, mine)
    return [parts[k % len(parts)][k // len(parts)] for k in range(len(groups))]
