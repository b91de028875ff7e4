"""How a run's state reaches its file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO


class StateFile(TorchCheckpointIO):
    """Lightning's checkpoint, straight into its file, because its folder is what is renamed.

    Lightning itself writes it to the system's folder for temporary files and moves it, so that every kill may leave one
    there, and two disks can be full instead of one.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None
    ) -> None:
        """Write a checkpoint. Raises `OSError`, which `torch.save` into a file does not when the disk is full."""
        data = io.BytesIO()
        torch.save(checkpoint, data)
        with Path(path).open("wb") as file:
            file.write(data.getbuffer())
