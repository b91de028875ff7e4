"""Lightning callbacks: publishing iterations, progress, and metrics files."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer


class PublishIteration(Callback):
    """After an iteration's updates: hand everything that belongs to it to `publish`, on the first process only.

    `publish(save_checkpoint)` decides where; `save_checkpoint(path)` writes Lightning's checkpoint there (models,
    optimizers, trainer progress, the data module's loop state). Every process calls it, as Lightning requires.
    """

    def __init__(self, publish: Callable[[Callable[[Path], None]], None]) -> None:
        self._publish = publish

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Runs after the module's own hooks, so that the iteration's statistics are complete."""
        self._publish(trainer.save_checkpoint)


class IterationProgress(Callback):
    """Tells how far the run is after every iteration: `report(iteration, seconds)`."""

    def __init__(self, report: Callable[[int, float], None]) -> None:
        self._report = report
        self._start = 0.0

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """The clock of an iteration starts before anything is collected."""
        self._start = time.monotonic()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """The clock stops when the iteration is learned."""
        self._report(trainer.current_epoch, time.monotonic() - self._start)


def write_dvclive(folder: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """The metrics of a run as DVCLive files: metrics.json (last values) and plots/metrics/*.tsv (curves)."""
    from dvclive import Live

    with Live(str(folder), save_dvc_exp=False, report=None, dvcyaml=None, monitor_system=False) as live:
        for row in rows:
            live.step = int(row["iteration"])
            for name, value in row.items():
                if name != "iteration" and value is not None:
                    live.log_metric(name, value)
            live.make_summary()
