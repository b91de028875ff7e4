"""Experience for the module. An epoch is an iteration, and its batches are collected when it starts.

The stream is on-policy by construction: nothing is collected before the previous iteration's last update. The
dataset has a length. Without one, Lightning fetches a batch ahead, which is stale by one update and cannot be resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lightning.pytorch import LightningDataModule
from torch.utils.data import DataLoader, IterableDataset

from rlanything.learn.module import Minibatch

Collect = Callable[[], list[Minibatch]]


class ExperienceStream(IterableDataset[Minibatch]):
    """Collects an iteration each time it is iterated. Yields `updates` minibatches; an empty one trains nothing.

    Raises `ValueError` when `collect` returns another number of minibatches.
    """

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
        """The stream. Its items are whole minibatches, so nothing is batched here."""
        return DataLoader(self._stream, batch_size=None, num_workers=0)

    def state_dict(self) -> dict[str, Any]:
        """The loop's state after the iteration at whose end the checkpoint is written."""
        return self._save()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the loop's state from a checkpoint."""
        self._restore(state_dict)
