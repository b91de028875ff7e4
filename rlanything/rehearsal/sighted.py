"""The architectures of Qwen2.5-VL and Qwen3-VL as small as they go, with image processors in the form of real ones.

Real files of these checkpoints have the same keys: a nested config.json, a preprocessor_config.json, and a chat
template that writes one token for a picture between two marks.
"""

from __future__ import annotations

from typing import Any

from transformers import (
    PreTrainedConfig,
    PreTrainedTokenizerBase,
    Qwen2_5_VLConfig,
    Qwen3VLConfig,
)

MARKS = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
KEYS = ("vision_start_token_id", "vision_end_token_id", "image_token_id", "video_token_id")
"""The keys of config.json that hold the ids of `MARKS`."""
MOST_PIXELS = 64 * 28 * 28
"""A picture is made smaller than this, so that it takes at most 64 tokens."""
_TURNS = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}"
    "{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
)
TEMPLATE = (
    "{% if messages[0].role != 'system' %}<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n{% endif %}"
    f"{_TURNS}{{% endif %}}"
)
THINKING = f"{_TURNS}<think>\n{{% endif %}}"
"""Of models that always think, as Qwen3-VL-8B-Thinking: the prompt begins the thought. Qwen3-VL adds no system turn."""
_EYES = {"depth": 2, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "in_channels": 3}


def ids(tokenizer: PreTrainedTokenizerBase) -> dict[str, int]:
    """The ids of the marks, by their keys in config.json."""
    found = tokenizer.convert_tokens_to_ids(list(MARKS))
    assert isinstance(found, list)
    return dict(zip(KEYS, found, strict=True))


def qwen2_5_vl(**text: Any) -> PreTrainedConfig:
    """The configuration around that of the language model; see `Architecture.fresh`."""
    rope = {"rope_type": "default", "rope_theta": 1000000.0, "mrope_section": [4, 6, 6]}
    seen = {
        **_EYES,
        "out_hidden_size": text["hidden_size"],
        "window_size": 56,
        "fullatt_block_indexes": [1],
        "patch_size": 14,
    }
    return Qwen2_5_VLConfig(**_nested(text, rope, seen))


def qwen3_vl(**text: Any) -> PreTrainedConfig:
    """The same of Qwen3-VL, whose eyes also reach into the first layers of the language model."""
    rope = {
        "rope_type": "default",
        "rope_theta": 5000000.0,
        "mrope_section": [6, 5, 5],
        "mrope_interleaved": True,
    }
    seen = {
        **_EYES,
        "out_hidden_size": text["hidden_size"],
        "num_position_embeddings": 64,
        "deepstack_visual_indexes": [0],
        "patch_size": 16,
    }
    return Qwen3VLConfig(**_nested(text, rope, seen))


def processor(patch: int) -> Any:
    """An image processor as real checkpoints have it. patch: pixels of a side of a patch."""
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    return Qwen2VLImageProcessorPil(
        patch_size=patch, size={"shortest_edge": (2 * patch) ** 2, "longest_edge": MOST_PIXELS}
    )


def _nested(text: dict[str, Any], rope: dict[str, Any], seen: dict[str, Any]) -> dict[str, Any]:
    outer = {key: text.pop(key) for key in (*KEYS, "tie_word_embeddings")}
    return {**outer, "text_config": {**text, "rope_parameters": rope}, "vision_config": seen}
