"""The files of the servers of a model: the weights that they read, written anew at every update, sockets and logs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import torch
from torch import Tensor
from transformers import PreTrainedModel

from rlanything.core.errors import UserError
from rlanything.engines.lora.files import save_lora
from rlanything.engines.vllm.instance import save_config
from rlanything.engines.vllm.served import remover
from rlanything.engines.vllm.served.remover import remove
from rlanything.engines.vllm.served.tensors import write_tensors

FILE, LORA = "model.safetensors", "lora"
PREFIX = "rlanything-vllm-"
LONGEST = 32
"""Bytes of the path of the folder of temporary files, at most. A Unix socket's path has 107 at most: this folder's, 25
of ours, `/server<n>/<start>` with five digits in all, and the 37 of the names of vLLM's own sockets."""


class Store:
    """Folders that only this user can open. They are removed at the end, also when this process is killed.

    `model`: the weights, in the form of a checkpoint, and LoRA's apart. `processes`: sockets and logs.

    Args:
        model: gives the configuration.
        dtype: number format in which weights are written.
        within: the folder for the weights; None: where the system has temporary files.

    Raises `UserError` where that cannot be written.
    """

    def __init__(self, model: PreTrainedModel, dtype: torch.dtype, within: str | None) -> None:
        self._dtype, self._written = dtype, 0
        with ExitStack() as made:
            self.model = _folder(within, f"engine.folder = {within}")
            made.callback(remove, [self.model])
            self.processes = _folder(
                short(), f"folder of temporary files, {short() or tempfile.gettempdir()}"
            )
            made.callback(remove, [self.processes])
            save_config(model, self.model)
            self._folders = self.model, self.processes
            command = [sys.executable, "-m", remover.__name__, *map(str, self._folders)]
            self._remover = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,  # whoever reads the output of this process need not wait for it
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # a group of its own, which Ctrl-C does not reach
            )
            made.pop_all()

    def write(self, weights: Mapping[str, Tensor]) -> Path:
        """Write a whole state. Every tensor is written, also a tied one, under each of its names. Returns the folder.

        Servers keep weights that they are not given, and report no error. The file of the last state goes first, so
        that the disk need not hold two. Servers read the folder when they start or are given it, never meanwhile.
        """
        (self.model / FILE).unlink(missing_ok=True)
        write_tensors(self.model / f"{FILE}.part", weights, self._dtype)
        os.replace(self.model / f"{FILE}.part", self.model / FILE)
        return self.model

    def write_lora(self, model: PreTrainedModel) -> Path:
        """Write LoRA's weights alone, in the place of the last ones. Returns the folder, which is always a new one.

        Servers find cached prefixes under its name.
        """
        self._written += 1
        remove([self.model / LORA / f"{self._written - 1}"])
        folder = self.model / LORA / f"{self._written}"
        save_lora(model, folder, str(self.model))
        return folder

    def close(self) -> None:
        """Remove the folders."""
        remove(self._folders)
        self._remover.communicate()  # it ends with the pipe


def _folder(within: str | None, what: str) -> Path:
    """A new folder. Raises `UserError` that says of `what` why it cannot be made."""
    try:
        return Path(tempfile.mkdtemp(prefix=PREFIX, dir=within))
    except OSError as error:
        raise UserError(f"{what}: cannot be written ({error.strerror})") from None


def short() -> str | None:
    """The folder for folders of sockets; None: where the system has temporary files."""
    return None if len(os.fsencode(tempfile.gettempdir())) <= LONGEST else "/tmp"
