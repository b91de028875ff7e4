"""Which models can be trained here, by their config.json. A model that is only sampled may have any architecture.

The trainer applies the output layer to hidden states itself, so what a model does to its logits after that is left out.
A row of the reward model holds several votes as branches, with an attention mask of its own (`losses`). With such a
mask transformers leaves out sliding windows, and layers without attention would mix the branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rlanything.core.printable import one_line

PLAIN = {
    "final_logit_softcapping": None,
    "logit_scale": 1,
    "logits_scaling": 1,
    "lm_head_multiplier": 1,
    "output_multiplier": 1,
}
"""Keys of a config.json that change logits after the output layer, with the value that changes nothing."""
_PLAIN_LAYERS = "models with attention in every layer, and rotary or learned positions, as Qwen and Llama"
FULL, SLIDING = "full_attention", "sliding_attention"
STATES = ("mamba_d_state", "state_size", "ssm_state_size")
"""Keys of models with layers that carry a state from token to token instead of attention."""
OTHERS = (
    *("bloom", "mpt", "rwkv", "gpt_neo", "recurrent_gemma"),
    *("mamba", "mamba2", "falcon_mamba", "jamba", "bamba", "zamba", "zamba2", "falcon_h1", "nemotron_h"),
)
"""Values of `model_type` with layers that do not follow the positions and the mask of a row, whatever the keys say."""


def why_untrainable(fields: Mapping[str, Any]) -> str:
    """Why the log-probs of the trainer would not be the model's, with the key, its value and what is allowed; or ''.

    fields: of a config.json, or of a whole configuration of transformers. A config.json may leave out keys, for which
    transformers has values of its own, so the whole one says more.
    """
    inner = fields.get("text_config")
    found = next(_found({**fields, **inner} if isinstance(inner, Mapping) else fields), None)
    if found is None:
        return ""
    key, value, allowed = found
    return (
        f"its config.json has {key} = {one_line(str(value))[:60]}, and no such model can be trained here, only "
        f"sampled; allowed: {allowed}"
    )


def _found(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """Keys that forbid training, each with its value and with what is allowed."""
    for key, plain in PLAIN.items():
        value = fields.get(key)
        if value is not None and value != plain:
            yield key, value, "null" if plain is None else f"{plain}"
    kinds = fields.get("layer_types")
    kinds = [str(kind) for kind in kinds] if isinstance(kinds, list | tuple) else []
    strange = [kind for kind in kinds if kind not in (FULL, SLIDING)]
    if strange:
        yield "layer_types", strange[0], f"{FULL} in every layer"
    window = fields.get("sliding_window")
    if SLIDING in kinds and window is None:
        yield "layer_types", SLIDING, f"{FULL} in every layer"
    if _narrow(fields, kinds, window):
        yield "sliding_window", window, f"null, or at least max_position_embeddings, {_positions(fields)}"
    if fields.get("model_type") in OTHERS:
        yield "model_type", fields["model_type"], _PLAIN_LAYERS
    for key in STATES:
        if fields.get(key) is not None:
            yield key, fields[key], _PLAIN_LAYERS


def _narrow(fields: Mapping[str, Any], kinds: list[str], window: Any) -> bool:
    """Whether a layer has a window that ends before the first token of a text that the model may read."""
    # Where the config.json of a Qwen is silent, it has no window.
    qwen = str(fields.get("model_type")).startswith("qwen")
    asked = fields.get("use_sliding_window", not qwen)
    if window is None or not asked:
        return False
    if "use_sliding_window" in fields and SLIDING not in kinds:
        # The layers from `max_window_layers` on have it.
        first, layers = fields.get("max_window_layers"), fields.get("num_hidden_layers")
        if kinds or (isinstance(first, int) and isinstance(layers, int) and first >= layers):
            return False
    positions = _positions(fields)
    return not (isinstance(window, int) and isinstance(positions, int) and window >= positions)


def _positions(fields: Mapping[str, Any]) -> Any:
    return fields.get("max_position_embeddings")
