"""What a check of finished runs depends on: a checkpoint by its content, and where models lie and in which format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlanything.config import Checkpoint, Config
from rlanything.core.ids import content_id
from rlanything.engines import sources
from rlanything.runs.layout import LoraCheckpoint

PLACED = ("accelerator", "strategy", "devices")
"""Keys of `train` that decide where a model lies."""


def placed(config: Config) -> dict[str, Any]:
    """Where the models lie and in which format, as plain values."""
    formats = {name: config.precision(name) for name in ("policy", "reward", "adapter")}
    return {name: getattr(config.train, name) for name in PLACED} | {"precision": formats}


def identity(checkpoint: Checkpoint, root: Path) -> Any:
    """A local model by its content, one of a hub by its name and its commit in the cache.

    One that LoRA trained by what it is made of: the base, and the folder of LoRA's weights.
    """
    if isinstance(checkpoint, LoraCheckpoint):
        lora = Checkpoint(path=checkpoint.lora)
        return {"base": identity(checkpoint.base, root), "lora": identity(lora, root)}
    found = sources.contents(checkpoint, root)
    return (
        content_id(found)
        if sources.is_local(checkpoint, root)
        else checkpoint.model_dump(mode="json") | found
    )
