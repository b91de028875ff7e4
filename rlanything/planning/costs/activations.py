"""Activations of a micro-batch: those of the decoders in transformers, and of the vision tower before them.

The tensors that autograd keeps of a layer were counted one by one (`layer_bytes`). With gradient checkpointing autograd
keeps the input of every layer, and all tensors of one layer at a time.
"""

from __future__ import annotations

from rlanything.config import LoraConfig
from rlanything.planning.costs.low_rank import kept_bytes
from rlanything.planning.costs.sizes import Size
from rlanything.planning.costs.tower import FULL, HALF, width_of

OF_LOGITS = 4
"""Float32 tensors of the size of the logits at the end of a micro-batch: logits, exponentials, two gradients."""


def layer_bytes(size: Size, precision: str, *, tree: bool) -> float:
    """Bytes that autograd keeps of one token in one layer.

    It keeps: four or six vectors of the hidden size (two norms with their inputs, the inputs of the projections);
    queries, keys, values and the output of attention; four vectors of the feed-forward layer. With the mask of a tree,
    attention repeats keys and values for every head.
    """
    hidden, attention, heads = size.hidden, size.attention, size.heads
    keys = 2 * (attention if tree else size.kv)
    wide = 2 * attention + keys + 4 * size.intermediate
    per_head = 2 * (attention + size.kv) + heads + size.kv_heads if size.normed_heads else 0
    if precision == "32-true":
        return FULL * (6 * hidden + wide + per_head + heads + 2)
    half_heads = 0.75 * FULL * per_head
    if precision == "bf16-mixed":
        return FULL * (4 * hidden + heads + 2) + HALF * (5 * hidden + wide) + half_heads
    return FULL * (2 * hidden + heads + 2) + HALF * (4 * hidden + wide) + half_heads


def activations(
    size: Size,
    precision: str,
    tokens: float,
    row: float,
    targets: float,
    *,
    tree: bool,
    recomputed: bool = False,
    lora: LoraConfig | None = None,
    shown: float = 0.0,
) -> float:
    """Peak bytes of a micro-batch: at the start of its backward pass, or while a layer is computed again.

    tokens: tokens of all rows. row: tokens of the longest row. targets: tokens that enter the loss. recomputed: with
    gradient checkpointing. lora: what trains; None: all weights. shown: how many of the tokens are pictures.
    """
    own = _decoder(size, precision, tokens, row, targets, tree=tree, recomputed=recomputed, lora=lora)
    if size.tower is None or not shown:
        return own
    patches = size.tower.patches(shown)
    pixels = size.tower.pixels(patches)
    # While a micro-batch is put together: the pixels of the one before, of its rows, and of all its rows together.
    between = 3 * pixels
    if lora is not None:  # the tower is frozen
        return max(between, pixels + max(own, size.tower.working(patches, width_of(precision))))
    kept = size.tower.kept(patches, precision, recomputed=recomputed)
    return max(between, kept + max(own, size.tower.again(patches, precision) if recomputed else 0.0))


def _decoder(
    size: Size,
    precision: str,
    tokens: float,
    row: float,
    targets: float,
    *,
    tree: bool,
    recomputed: bool,
    lora: LoraConfig | None,
) -> float:
    """The same of the decoder alone."""
    narrow = width_of(precision)
    layer = tokens * layer_bytes(size, precision, tree=tree)
    if lora is not None:
        # Under autocast the frozen weights are bfloat16, and so is what flows between the layers.
        frozen = "bf16-true" if precision == "bf16-mixed" else precision
        layer = tokens * (layer_bytes(size, frozen, tree=tree) + kept_bytes(size, lora, precision))
    ends = tokens * size.hidden * 3 * FULL
    logits = targets * size.vocab * (OF_LOGITS * FULL + (narrow if narrow == HALF else 0))
    layers = 1 if recomputed else size.layers
    mask = tokens * row * _mask_bytes(layers, precision) if tree else 0.0
    if not recomputed:
        return size.layers * layer + ends + logits + mask
    inputs = tokens * size.layers * size.hidden * (HALF if precision == "bf16-true" else FULL)
    gradients = tokens * 2 * size.intermediate * narrow  # of both factors of the feed-forward layer
    return inputs + ends + max(layer + gradients, logits) + mask


def _mask_bytes(layers: int, precision: str) -> int:
    """Bytes of one entry of a tree's mask: a boolean and a number to add; under autocast also a copy in each layer."""
    if precision == "bf16-mixed":
        return 1 + FULL + HALF * layers
    return 1 + (FULL if precision == "32-true" else HALF)
