"""Small random models, and rows for those that read pictures."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from PIL import Image as Pillow
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3VLForConditionalGeneration,
)

from rlanything.config import Checkpoint
from rlanything.core.images import Image
from rlanything.engines.sight.eyes import Eyes
from rlanything.learn.packing import NO_BRANCH, Row
from rlanything.planning.costs.sizes import Size, read_size
from rlanything.rehearsal import sighted

ARCHITECTURES: dict[str, tuple[type[Any], type[Any]]] = {
    "qwen2": (Qwen2ForCausalLM, Qwen2Config),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config),
    "llama": (LlamaForCausalLM, LlamaConfig),
}
ROWS = 4
"""Rows of a micro-batch of conversations; trees are long and come alone."""
SEEING: dict[str, tuple[type[Any], Callable[..., Any], int]] = {
    "qwen2_5_vl": (Qwen2_5_VLForConditionalGeneration, sighted.qwen2_5_vl, 14),
    "qwen3_vl": (Qwen3VLForConditionalGeneration, sighted.qwen3_vl, 16),
}
"""Models that read pictures, and the pixels of a side of a patch."""
MARKS = dict(zip(sighted.KEYS, range(1000, 1004), strict=True))
PATCHES = 14
"""Patches along a side of their pictures."""
TOWER = {"depth": 4, "hidden_size": 192, "intermediate_size": 720, "num_heads": 4}
"""Sizes of their towers: wide enough that layers take more than pixels, as in large models."""


def random_model(name: str, **sizes: Any) -> PreTrainedModel:
    """A small random model of an architecture; `sizes` replace entries of its configuration."""
    model, config = ARCHITECTURES[name]
    usual = {
        "vocab_size": 1024,
        "hidden_size": 96,
        "intermediate_size": 288,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 24,
        "tie_word_embeddings": True,
    }
    torch.manual_seed(0)
    made: PreTrainedModel = model(config(**{**usual, **sizes}))
    return made


def seeing_model(name: str) -> tuple[PreTrainedModel, Eyes, list[Row]]:
    """A small random model that reads pictures, its eyes, and a micro-batch of rows that show two pictures each."""
    model, configure, patch = SEEING[name]
    text = {
        "vocab_size": 1024,
        "hidden_size": 96,
        "intermediate_size": 288,
        "num_hidden_layers": 3,
        "num_attention_heads": 3,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "max_position_embeddings": 4096,
    }
    config = configure(tie_word_embeddings=True, **MARKS, **text)
    for key, value in TOWER.items():
        setattr(config.vision_config, key, value)
    torch.manual_seed(0)
    made: PreTrainedModel = model(config)
    side = PATCHES * patch
    pictures = {image.sha256: image for image in (Image(_png(side, shade)) for shade in (60, 90))}
    eyes = Eyes(sighted.processor(patch), made, pictures.__getitem__)
    return made, eyes, [_row(eyes.token, eyes.tokens(side, side), list(pictures), k) for k in range(ROWS)]


def _row(token: int, count: int, names: list[str], number: int) -> Row:
    """Text with two pictures of `count` tokens within it, and eight targets at its end."""
    row, shown = Row(images=names), (token,) * count
    for ids in (range(10, 40 + number), shown, range(50, 60), shown, range(60, 90)):
        row.read(tuple(ids), len(row.ids), None, NO_BRANCH, NO_BRANCH)
    for source in range(len(row.ids) - 9, len(row.ids) - 1):
        row.learn(source, row.ids[source + 1], (), -1.0, 1.0, 1.0)
    return row


def _png(side: int, shade: int) -> bytes:
    file = io.BytesIO()
    Pillow.new("RGB", (side, side), (shade, shade, shade)).save(file, "PNG")
    return file.getvalue()


def sizes_of(model: PreTrainedModel, folder: Path) -> Size:
    """What the plan reads of a saved model, from its config.json and header."""
    model.save_pretrained(str(folder))
    return read_size(Checkpoint(path=str(folder)), "model.policy", folder)
