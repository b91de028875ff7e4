"""What reads pictures before the decoder does: the vision tower of Qwen2.5-VL and Qwen3-VL, its sizes and its memory.

The tensors that autograd keeps of a patch in a layer of transformers' towers were counted one by one. A tower trains
where all weights of a model do. With LoRA it is frozen: autograd keeps nothing of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlanything.core.errors import ConfigError

HALF, FULL = 2, 4
KINDS = ("qwen2_5_vl", "qwen3_vl")
"""The `model_type` of models whose towers are counted."""
MOST = 1 << 24
"""Upper limit for the numbers that are read from a config.json."""
MOST_LAYERS = 1000
"""Upper limit for numbers of layers and the lengths of lists, because building each takes time."""
SMALL = {"patch_size": 1024, "temporal_patch_size": 64, "in_channels": 64, "spatial_merge_size": 64}
"""Upper limits for numbers that are multiplied with each other."""
OF_MERGER = 4
"""Vectors of the hidden size, for each patch, that autograd keeps where patches become tokens."""


@dataclass(frozen=True)
class Tower:
    """The sizes of a vision tower."""

    parameters: int
    mergers: int
    """Those of its parameters that work once a token, and not once a patch."""
    unused: int
    """Those of its parameters that are in no matrix product."""
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

    @property
    def outside(self) -> int:
        """Parameters in no layer: mergers, what turns pixels into vectors, and what is in no matrix product."""
        return self.mergers + self.unused + self.numbers * self.hidden

    def patches(self, tokens: float) -> float:
        """The patches behind `tokens` tokens of pictures."""
        return tokens * self.merged

    def products(self, tokens: float) -> float:
        """Parameters in the matrix products behind `tokens` tokens of pictures, each as often as it is used."""
        own = self.parameters - self.mergers - self.unused
        return self.patches(tokens) * own + tokens * self.mergers

    def pixels(self, patches: float) -> float:
        """Bytes of the pixels, which are float32 until the tower reads them."""
        return patches * self.numbers * FULL

    def layer_bytes(self, precision: str) -> float:
        """Bytes that autograd keeps of one patch in one layer.

        Eleven vectors of the hidden size: the inputs of two norms and of four matrix products, the queries, keys and
        values before they are turned, queries and keys after it, and what attention gives. Of an RMS norm also the
        normalised vector. Under autocast a norm reads a float32 copy on GPUs, and an RMS norm everywhere.
        """
        narrow = width_of(precision)
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
        narrow = width_of(precision)
        copy = self.numbers * (HALF if narrow == HALF else 0)
        ends = copy + self.outputs * OF_MERGER * self.hidden * narrow
        layers = self.layers * (self.hidden * narrow if recomputed else self.layer_bytes(precision))
        return self.pixels(patches) + patches * (ends + layers)

    def working(self, patches: float, width: int) -> float:
        """Bytes of one layer's forward pass without gradients, beside the pixels. width: bytes of a number.

        The most are needed in the feed-forward layer, or where queries and keys are turned, which is done in float32.
        """
        forward = width * (6 * self.hidden + 2 * self.intermediate)
        turning = (5 * width + 8 * FULL) * self.hidden
        return patches * max(forward, turning)

    def again(self, patches: float, precision: str) -> float:
        """Bytes while a layer is computed again: what autograd keeps of it, and the gradients within it."""
        gradients = 2 * self.intermediate * width_of(precision)
        return patches * (self.layer_bytes(precision) + gradients)


def check_fields(data: Mapping[str, Any], place: str) -> None:
    """Raise `ConfigError` for a tower that nobody could build. data: the fields of an untrusted config.json."""
    seen = data.get("vision_config")
    if not isinstance(seen, Mapping):
        return
    for key, value in ((str(key), value) for key, value in seen.items()):
        name = f"{place}: vision_config.{key[:40]}"
        if isinstance(value, list):
            if len(value) > MOST_LAYERS or (key.endswith("indexes") and len({*map(str, value)}) < len(value)):
                raise ConfigError(f"{name}: at most {MOST_LAYERS:,} entries are allowed, and a layer once")
        elif value is not None:
            _check_number(key, value, name)


def _check_number(key: str, value: object, name: str) -> None:
    layers = key == "depth" or "layers" in key
    most = MOST_LAYERS if layers else SMALL.get(key, MOST)
    if layers or key in SMALL or key.endswith("_size"):
        if type(value) is not int or not 0 < value <= most:
            raise ConfigError(f"{name} = {str(value)[:40]}: must be a whole number from 1 to {most:,}")
    elif type(value) is int and abs(value) > most:
        raise ConfigError(f"{name} = {str(value)[:40]}: must be at most {most:,}")


def of_model(model: Any) -> Tower | None:
    """The tower of a model that transformers has built; None for one that reads text alone, or of another kind.

    Raises what Python raises for sizes of a form that these models do not have.
    """
    kind = model.config.model_type
    if kind not in KINDS:
        return None
    module, seen = model.base_model.visual, model.config.vision_config
    deep = [] if kind == "qwen2_5_vl" else [*module.deepstack_merger_list]
    return Tower(
        parameters=_count(module),
        mergers=sum(map(_count, (module.merger, *deep))),
        unused=_count(module.pos_embed) if kind == "qwen3_vl" else 0,
        layers=seen.depth,
        hidden=seen.hidden_size,
        intermediate=seen.intermediate_size,
        heads=seen.num_heads,
        numbers=seen.in_channels * seen.temporal_patch_size * seen.patch_size**2,
        merged=seen.spatial_merge_size**2,
        outputs=1 + len(deep),
        gated=kind == "qwen2_5_vl",
    )


def _count(module: Any) -> int:
    return sum(weight.numel() for weight in module.parameters())


def width_of(precision: str) -> int:
    """Bytes of a number that flows between the layers."""
    return FULL if precision == "32-true" else HALF
