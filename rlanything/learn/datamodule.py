"""Experience on its way to the module: an epoch is an iteration, its batches are collected when it starts.

The stream is on-policy by construction: nothing is collected before the previous iteration's last update. The
dataset has a length, because without one Lightning fetches a batch ahead (stale by one update, and not resumable).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lightning.pytorch import LightningDataModule
from torch.utils.data import DataLoader, IterableDataset

from rlanything.learn.module import Minibatch

Collect = Callable[[], list[Minibatch]]


class ExperienceStream(IterableDataset[Minibatch]):
    """Collects an iteration each time it is iterated; yields `updates` minibatches (empty ones train nothing)."""

    def __init__(self, collect: Collect, updates: int) -> None:
        self._collect = collect
        self._updates = updates

    def __len__(self) -> int:
        return self._updates

    def __iter__(self) -> Iterator[Minibatch]:
        batches = self._collect()
        if len(batches) != self._updates:
            raise ValueError(f"collected {len(batches)} minibatches, expected {self._updates}")
        yield from batches


class ExperienceDataModule(LightningDataModule):
    """Hands the stream to the trainer and keeps the loop's state inside its checkpoints.

    `save` and `restore` turn the loop's state into plain JSON values and back.
    """

    def __init__(
        self,
        collect: Collect,
        updates: int,
        save: Callable[[], dict[str, Any]],
        restore: Callable[[dict[str, Any]], None],
    ) -> None:
        super().__init__()
        self._stream = ExperienceStream(collect, updates)
        self._save = save
        self._restore = restore

    def train_dataloader(self) -> DataLoader[Minibatch]:
        """The stream; batches are whole minibatches already."""
        return DataLoader(self._stream, batch_size=None, num_workers=0)

    def state_dict(self) -> dict[str, Any]:
        """The loop's state after the iteration that a checkpoint closes."""
        return self._save()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self._restore(state_dict)
