"""What reads pictures before the decoder does: the vision tower of Qwen2.5-VL and Qwen3-VL, its sizes and its memory.

The tensors that autograd keeps of a patch in a layer of transformers' towers were counted one by one. A tower trains
where all weights of a model do. With LoRA it is frozen, and autograd keeps nothing of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlanything.core.errors import ConfigError

HALF, FULL = 2, 4
MOST = 1 << 24
"""Upper limit for the numbers that are read."""
MOST_LAYERS = 1000
OF_MERGER = 4
"""Vectors of the hidden size, for each patch, that autograd keeps where patches become tokens."""


@dataclass(frozen=True)
class Tower:
    """The sizes of a vision tower."""

    parameters: int
    layers: int
    hidden: int
    intermediate: int
    heads: int
    numbers: int
    """Numbers of a patch: its pixels in every colour and at every time."""
    merged: int
    """Patches that become one token."""
    outputs: int
    """Mergers: one at the end, and in Qwen3-VL one for each layer whose output also enters the decoder."""
    gated: bool
    """Whether its layers are Qwen2.5-VL's, with RMS norms and a gate, or Qwen3-VL's."""

    def patches(self, tokens: float) -> float:
        """The patches behind `tokens` tokens of pictures."""
        return tokens * self.merged

    def pixels(self, patches: float) -> float:
        """Bytes of the pixels, which are float32 until the tower reads them."""
        return patches * self.numbers * FULL

    def layer_bytes(self, precision: str) -> float:
        """Bytes that autograd keeps of one patch in one layer.

        Eleven vectors of the hidden size: the inputs of two norms and of four matrix products, the queries, keys and
        values before they are turned, queries and keys after it, and what attention gives. Of an RMS norm also the
        normalised vector. Under autocast a norm reads a float32 copy on GPUs, and an RMS norm everywhere.
        """
        narrow = _width(precision)
        vectors = 11 * narrow
        statistics = self.heads * FULL + 4 * narrow
        if self.gated:
            vectors += 2 * (narrow if precision == "32-true" else FULL)
            vectors += 2 * HALF if precision == "bf16-mixed" else 0
            statistics = self.heads * FULL + 2 * FULL
        elif precision == "bf16-mixed":
            vectors += 2 * HALF
        return vectors * self.hidden + (4 if self.gated else 2) * self.intermediate * narrow + statistics

    def kept(self, patches: float, precision: str, *, recomputed: bool) -> float:
        """Bytes that stay until the decoder's backward pass has ended: pixels, and what autograd keeps."""
        narrow = _width(precision)
        copy = self.numbers * (HALF if narrow == HALF else 0)
        ends = copy + self.outputs * OF_MERGER * self.hidden * narrow
        layers = self.layers * (self.hidden * narrow if recomputed else self.layer_bytes(precision))
        return self.pixels(patches) + patches * (ends + layers)

    def working(self, patches: float, width: int) -> float:
        """Bytes of one layer's forward pass without gradients, beside the pixels. width: bytes of a number."""
        return patches * width * (6 * self.hidden + 2 * self.intermediate)

    def again(self, patches: float, precision: str) -> float:
        """Bytes while a layer is computed again: what autograd keeps of it, and the gradients within it."""
        gradients = 2 * self.intermediate * _width(precision)
        return patches * (self.layer_bytes(precision) + gradients)


def check_fields(data: Mapping[str, Any], place: str) -> None:
    """Raise `ConfigError` for a tower that would take too long to build. data: fields of an untrusted config.json."""
    seen = data.get("vision_config")
    for key, most in (("depth", MOST_LAYERS), ("hidden_size", MOST), ("intermediate_size", MOST)):
        value = seen.get(key, 1) if isinstance(seen, dict) else 1
        if type(value) is not int or not 0 < value <= most:
            raise ConfigError(
                f"{place}: vision_config.{key} = {str(value)[:40]}: must be a whole number from 1 to {most:,}"
            )


def of_model(model: Any) -> Tower | None:
    """The tower of a model that transformers has built; None for one that reads text alone, or in another way."""
    module, seen = getattr(model.base_model, "visual", None), getattr(model.config, "vision_config", None)
    if module is None or seen is None:
        return None
    side, times = seen.patch_size, seen.temporal_patch_size
    return Tower(
        parameters=sum(weight.numel() for weight in module.parameters()),
        layers=seen.depth,
        hidden=seen.hidden_size,
        intermediate=seen.intermediate_size,
        heads=seen.num_heads,
        numbers=seen.in_channels * times * side * side,
        merged=seen.spatial_merge_size**2,
        outputs=1 + len(getattr(seen, "deepstack_visual_indexes", ())),
        gated=hasattr(seen, "fullatt_block_indexes"),
    )


def _width(precision: str) -> int:
    """Bytes of a number that flows between the layers."""
    return FULL if precision == "32-true" else HALF
