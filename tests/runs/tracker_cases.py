"""Loggers and callbacks that a configuration may name, and one class that is neither."""

from __future__ import annotations

from pathlib import Path

from lightning.pytorch import Callback, LightningModule, Trainer


class Neither:
    """Must never be called."""

    def __init__(self) -> None:
        raise AssertionError("called before its class was checked")


class InterruptOnce(Callback):
    """Interrupts the run when iteration `at` is trained for the first time; `marker` remembers it."""

    def __init__(self, at: int, marker: str) -> None:
        self.at = at
        self.marker = Path(marker)

    def on_train_batch_end(self, trainer: Trainer, *_: object) -> None:
        if trainer.current_epoch == self.at and not self.marker.exists():
            self.marker.touch()
            raise KeyboardInterrupt


class StopAt(Callback):
    """Ends the training early."""

    def __init__(self, iteration: int) -> None:
        self.iteration = iteration

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        trainer.should_stop = trainer.current_epoch >= self.iteration
