"""The files of the servers of a model: the weights that they read, written anew at every update, sockets and logs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedModel

from rlanything.core.errors import UserError
from rlanything.engines.vllm.instance import save_config

FILE = "model.safetensors"
PREFIX = "rlanything-vllm-"
LONGEST = 40
"""Characters of the folder of temporary files. A Unix socket's path has 107 at most."""


class Store:
    """Folders that only this user can open. They are removed at the end.

    `model`: the weights, in the form of a checkpoint. `processes`: sockets and logs. `folders`: all there is.

    Args:
        model: gives the configuration.
        dtype: number format in which weights are written.
        within: the folder for the weights; None: where the system has temporary files.

    Raises `UserError` where that cannot be written.
    """

    def __init__(self, model: PreTrainedModel, dtype: torch.dtype, within: str | None) -> None:
        self._dtype = dtype
        try:
            self.model = Path(tempfile.mkdtemp(prefix=PREFIX, dir=within))
        except OSError as error:
            raise UserError(f"engine.folder = {within}: cannot be written ({error.strerror})") from None
        self.processes = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_short()))
        self.folders = self.processes, self.model
        save_config(model, self.model)

    def write(self, weights: Mapping[str, Tensor]) -> Path:
        """Write a whole state. Every tensor is written, also a tied one, under each of its names. Returns the folder.

        Servers keep weights that they are not given, and report no error.
        """
        own = {name: self._whole(tensor) for name, tensor in weights.items()}
        save_file(own, self.model / f"{FILE}.part", metadata={"format": "pt"})
        os.replace(self.model / f"{FILE}.part", self.model / FILE)
        return self.model

    def close(self) -> None:
        """Remove the folders."""
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)

    def _whole(self, tensor: Tensor) -> Tensor:
        """A copy in the memory of the CPU: no two tensors of a file may share memory."""
        dtype = self._dtype if tensor.is_floating_point() else tensor.dtype
        return tensor.detach().to("cpu", dtype, copy=True).contiguous()


def _short() -> str | None:
    """The folder for folders of sockets; None: where the system has temporary files."""
    return None if len(tempfile.gettempdir()) <= LONGEST else "/tmp"
