"""Random models of the sizes and shapes of published checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, PreTrainedModel

from rlanything.core.errors import MachineError
from rlanything.planning.costs.sizes import DECLARED, Size, declared, from_fields
from rlanything.rehearsal.architectures import made_on

ROOT = Path(__file__).parents[2]
"""The project, whatever the current folder is."""


def known() -> dict[str, Any]:
    """Name of a checkpoint -> the fields of its config.json, as experiments/model/sizes.json has them."""
    return declared(ROOT)


def made(name: str, form: torch.dtype, place: torch.device) -> tuple[PreTrainedModel, Size]:
    """A model of the sizes of a known checkpoint, on a device.

    Raises `MachineError`, with the name, where the device has no room for it.
    """
    fields = known()[name]
    try:
        model = made_on(AutoConfig.for_model(**fields), form, place).eval()
    except MachineError as error:
        raise MachineError(f"{name}: {error}") from None
    return model, from_fields(fields, name, str(DECLARED))
