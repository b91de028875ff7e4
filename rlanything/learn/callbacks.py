"""Callbacks: publish an iteration, end with the other processes. The metrics of a finished run as DVCLive files."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

Publish = Callable[[Callable[[Path], None]], Mapping[str, float]]
"""Publishes an iteration and returns its metrics. Its argument writes Lightning's checkpoint to a path."""


class PublishIteration(Callback):
    """Publishes an iteration after its updates, then logs its metrics.

    Lightning's checkpoint holds models, optimizers, trainer progress, and the data module's loop state. Every process
    must call `publish`, because Lightning requires every process to take part in a checkpoint.
    """

    def __init__(self, publish: Publish) -> None:
        self._publish = publish

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Publish, and log the metrics through Lightning. Loggers use `step`, the iteration, as their step."""
        metrics = self._publish(trainer.save_checkpoint)
        pl_module.log_dict({**metrics, "step": metrics["iteration"]}, batch_size=1)


class EndTogether(Callback):
    """Where several processes share a run, SIGTERM ends this one at once.

    torchrun sends it to the others when a process has ended. Lightning's handler would broadcast to the processes, of
    which one is gone, in the middle of whatever runs: environment code may catch the error, and another collective may
    wait for it. Files are written so that the end of a process does no damage.
    """

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Replace Lightning's handler, which is set by now. At the end Lightning puts the earlier one back."""
        if trainer.world_size > 1:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def write_dvclive(folder: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """The metrics of a run as DVCLive files: metrics.json (last values) and plots/metrics/*.tsv (curves).

    DVCLive itself is not used, because it looks for a repository. It makes a DVC repository where there is only Git,
    fails where Git has no commit yet, and may send the metrics elsewhere. Only its files are needed here.
    """
    curves: dict[str, list[str]] = {}
    summary: dict[str, Any] = {}
    for row in rows:
        step = int(row["iteration"])
        for name, value in row.items():
            if name != "iteration" and value is not None:
                *above, last = name.split("/")
                curves.setdefault(name, [f"step\t{last}"]).append(f"{step}\t{value}")
                place = summary
                for part in above:
                    place = place.setdefault(part, {})
                place[last] = value
        summary["step"] = step
    for name, lines in curves.items():
        _write(folder / "plots" / "metrics" / f"{name}.tsv", lines)
    _write(folder / "metrics.json", [json.dumps(summary, indent=4)])


def _write(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))
