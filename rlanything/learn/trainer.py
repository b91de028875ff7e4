"""The Lightning trainer of a run: quiet, with the loggers and callbacks that the configuration adds."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.callbacks import Checkpoint, ProgressBar
from lightning.pytorch.loggers import Logger

from rlanything.config import TrainConfig


class StateFile(TorchCheckpointIO):
    """Writes Lightning's checkpoint straight into its file.

    Lightning itself writes it into the system's temporary folder and moves it. A kill may leave it there, and a second
    disk may be full. Here the folder that holds the file is renamed when it is complete, so no second copy is needed.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None
    ) -> None:
        """Write a checkpoint. Raises `OSError`, which `torch.save` into a file does not when the disk is full."""
        data = io.BytesIO()
        torch.save(checkpoint, data)
        with Path(path).open("wb") as file:
            file.write(data.getbuffer())


def make_trainer(
    config: TrainConfig, epochs: int, callbacks: Sequence[Callback] = (), loggers: Sequence[Logger] = ()
) -> Trainer:
    """A trainer without output of its own: the project reports progress itself.

    Checkpoints and progress bars are off, unless a callback for them is among `callbacks`.
    """
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
    return Trainer(
        max_epochs=epochs,
        accelerator=config.accelerator,
        precision=config.precision,
        strategy=_strategy(config.strategy, config.devices),
        devices=config.devices,
        callbacks=list(callbacks),
        logger=list(loggers),
        enable_checkpointing=any(isinstance(callback, Checkpoint) for callback in callbacks),
        enable_progress_bar=any(isinstance(callback, ProgressBar) for callback in callbacks),
        enable_model_summary=False,
        num_sanity_val_steps=0,
        plugins=StateFile(),
    )


def _strategy(name: str, devices: int) -> str:
    """DDP must allow unused parameters: policy and reward model have a backward pass each."""
    return "ddp_find_unused_parameters_true" if devices > 1 and name in ("auto", "ddp") else name
