"""Random models of the sizes and shapes of published checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from rlanything.engines.sources import DECLARED
from rlanything.planning.costs.sizes import Size, from_fields


def made(name: str, form: torch.dtype, place: torch.device) -> tuple[PreTrainedModel, Size]:
    """A model of the sizes of a checkpoint of experiments/model/sizes.json, on a device."""
    fields = json.loads(Path(DECLARED).read_text())[name]
    config = AutoConfig.for_model(**fields)
    with place:
        model = AutoModelForCausalLM.from_config(config, dtype=form).eval()
    return model, from_fields(fields, name, str(DECLARED))
