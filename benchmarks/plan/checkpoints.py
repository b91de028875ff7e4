"""Random models of the sizes and shapes of published checkpoints."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from rlanything.planning.costs.sizes import DECLARED, Size, declared, from_fields


def made(name: str, form: torch.dtype, place: torch.device) -> tuple[PreTrainedModel, Size]:
    """A model of the sizes of a checkpoint of experiments/model/sizes.json, on a device."""
    fields = declared(Path())[name]
    config = AutoConfig.for_model(**fields)
    with place:
        model = AutoModelForCausalLM.from_config(config, dtype=form).eval()
    return model, from_fields(fields, name, str(DECLARED))
