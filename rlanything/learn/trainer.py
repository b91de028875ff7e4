"""The Lightning trainer of a run. It prints nothing, and uses the loggers and callbacks of the configuration."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins.environments import (
    ClusterEnvironment,
    LightningEnvironment,
    TorchElasticEnvironment,
)
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.callbacks import Checkpoint, ProgressBar
from lightning.pytorch.loggers import Logger
from lightning.pytorch.plugins import Precision as LightningPrecision
from lightning.pytorch.strategies import DDPStrategy, Strategy

from rlanything.config import Precision, TrainConfig
from rlanything.config.training import TIMEOUT_S
from rlanything.engines.placement import SHARDED
from rlanything.learn.sharding import Sharding


class StateFile(TorchCheckpointIO):
    """Lightning's checkpoint: written straight into its file, one tensor after the other, and read as it is used.

    A copy of the whole state in memory would take as much as policy, reward model and their moments together.

    Lightning itself writes it into the system's temporary folder and then moves it. A killed process may leave it
    there, and the disk of that folder may be full. Here no temporary copy is needed: the caller writes into a folder
    that it renames when everything is complete.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None
    ) -> None:
        """Write a checkpoint. Raises `OSError` when the disk is full; `torch.save` into a file may not."""
        with _Target(Path(path).open("wb", buffering=0)) as target:
            try:
                torch.save(checkpoint, target)
            except RuntimeError:
                if target.refusal is None:
                    raise
                raise target.refusal from None

    def load_checkpoint(
        self, path: str | Path, map_location: Any = "cpu", weights_only: bool | None = None
    ) -> dict[str, Any]:
        """A checkpoint in the host's memory, of which a process reads only what it takes over.

        Tensors are mapped from the file. Whoever changes one gets the changed pages for itself.
        """
        loaded: dict[str, Any] = torch.load(path, map_location, mmap=True, weights_only=weights_only)
        return loaded


class _Target(io.BufferedWriter):
    """A file for `torch.save` that remembers why the system refused to write.

    `torch.save` closes its archive even after a failed write. Closing it raises a `RuntimeError` about the archive, and
    that replaces the system's `OSError`.
    """

    refusal: OSError | None = None

    def write(self, data: Any, /) -> int:
        """Write all of `data`. Raises `OSError`."""
        try:
            return super().write(data)
        except OSError as error:
            self.refusal = error
            raise


class LoadedPrecision(LightningPrecision):
    """The precision of the models that have none of their own. It converts nothing.

    `engines.placement` loads every model in its format, and `JointModule` computes each one in its own. Lightning's
    plugins would hold for both models. That of `bf16-true` also converts buffers: the rotary frequencies then lose
    about five digits, and positions are wrong after a few hundred tokens.
    """

    def __init__(self, precision: Precision) -> None:
        self.precision = precision


def make_trainer(
    config: TrainConfig, epochs: int, callbacks: Sequence[Callback] = (), loggers: Sequence[Logger] = ()
) -> Trainer:
    """A trainer without output of its own: the project reports progress itself.

    Checkpoints and progress bars are off, unless a callback for them is among `callbacks`. Processes are those that
    torchrun started. Without it there is this one alone, also in a job of Slurm or MPI that has several.
    """
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
    return Trainer(
        max_epochs=epochs,
        accelerator=config.accelerator,
        strategy=make_strategy(
            config.strategy,
            config.processes,
            offload=config.offload,
            late=config.exchange == "last",
            timeout_s=config.timeout_s,
        ),
        devices=config.devices,
        num_nodes=config.nodes,
        callbacks=list(callbacks),
        logger=list(loggers),
        enable_checkpointing=any(isinstance(callback, Checkpoint) for callback in callbacks),
        enable_progress_bar=any(isinstance(callback, ProgressBar) for callback in callbacks),
        enable_model_summary=False,
        num_sanity_val_steps=0,
        plugins=[StateFile(), LoadedPrecision(config.precision), _environment()],
    )


def _environment() -> ClusterEnvironment:
    """Who says which of several processes this is. Lightning would also ask Slurm, LSF and MPI."""
    return TorchElasticEnvironment() if TorchElasticEnvironment.detect() else LightningEnvironment()


def make_strategy(
    name: str, processes: int, *, offload: bool = False, late: bool = False, timeout_s: float = TIMEOUT_S
) -> Strategy | str:
    """The strategy for Lightning, of all processes of a run, which wait `timeout_s` for each other.

    offload, late: see `Sharding`. DDP must allow unused parameters: each backward pass uses one of the two models.
    """
    wait = timedelta(seconds=timeout_s)
    if name == SHARDED:
        return Sharding(processes, offload=offload, late=late, timeout=wait)
    if processes > 1 and name in ("auto", "ddp"):
        return DDPStrategy(find_unused_parameters=True, timeout=wait)
    return name
