"""What the tests of LoRA share: small models with LoRA's weights, none of which is 0."""

from __future__ import annotations

import torch
from transformers import PreTrainedModel

from rlanything.config import LoraConfig
from rlanything.core.types import Request
from rlanything.engines.lora.injection import inject, trained

KEY = "learn.policy.lora"
SMALL = LoraConfig(rank=4, alpha=8.0)
REQUESTS = [Request(tuple(range(5, 15 + n)), n, 6) for n in range(6)]


def learned(model: PreTrainedModel, settings: LoraConfig = SMALL) -> PreTrainedModel:
    """The model with LoRA's weights, none of which is 0."""
    inject(model, settings, 3, KEY)
    return moved(model, 1)


def moved(model: PreTrainedModel, seed: int, by: float = 0.05) -> PreTrainedModel:
    """The model after an update of LoRA's weights."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for value in trained(model).values():
            value.add_(torch.randn_like(value) * by)
    return model
