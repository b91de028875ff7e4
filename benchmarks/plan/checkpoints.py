"""Random models of the sizes and shapes of published checkpoints."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import AutoConfig, PreTrainedModel

from rlanything.planning.costs.sizes import DECLARED, Size, declared, from_fields
from rlanything.rehearsal.architectures import made_on


def made(name: str, form: torch.dtype, place: torch.device) -> tuple[PreTrainedModel, Size]:
    """A model of the sizes of a checkpoint of experiments/model/sizes.json, on a device.

    Raises `MachineError` where the device has no room for it.
    """
    fields = declared(Path())[name]
    model = made_on(AutoConfig.for_model(**fields), form, place).eval()
    return model, from_fields(fields, name, str(DECLARED))
