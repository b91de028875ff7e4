"""Which models can be trained: those whose logits the trainer computes as the model does, and no others."""

from __future__ import annotations

import pytest
import torch
import transformers
from learn_cases import judged, largest, row_logprobs, separate_logprobs, verdicts

from rlanything.learn.packing import reward_rows
from rlanything.learn.trainable import OTHERS, why_untrainable

SIZES = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.2,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": 2,
}
"""Of a model that is as small as they go. Its logits are far from uniform."""
HEADS = {"head_dim": 8}
NARROW = {"sliding_window": 4}
EXACT = 1e-4
"""What rounding alone may differ by, in log-probs."""

ALLOWED = {
    "qwen2": ("Qwen2", {}),
    "qwen2 with a window that is off": ("Qwen2", {**NARROW, "use_sliding_window": False}),
    "qwen2 whose layers are all before the window": (
        "Qwen2",
        {**NARROW, "use_sliding_window": True, "max_window_layers": 2},
    ),
    "qwen3": ("Qwen3", HEADS),
    "llama": ("Llama", {}),
    "phi3 with a window as long as its texts": ("Phi3", {"sliding_window": 256}),
    "mistral without a window": ("Mistral", {"sliding_window": None}),
    "granite that scales nothing": ("Granite", {"logits_scaling": 1.0}),
    "gemma": ("Gemma", HEADS),
}
REFUSED = {
    "mistral": ("Mistral", NARROW, "sliding_window = 4"),
    "mistral that calls its layers full": (
        "Mistral",
        {**NARROW, "layer_types": ["full_attention"] * 2},
        "sliding_window = 4",
    ),
    "phi3": ("Phi3", NARROW, "sliding_window = 4"),
    "qwen2 with a window": (
        "Qwen2",
        {**NARROW, "use_sliding_window": True, "max_window_layers": 1},
        "sliding_window = 4",
    ),
    "gemma2": ("Gemma2", {**HEADS, "final_logit_softcapping": 1.0}, "final_logit_softcapping = 1.0"),
    "gemma3_text": ("Gemma3", {**HEADS, **NARROW}, "sliding_window = 4"),
    "granite": ("Granite", {"logits_scaling": 8.0}, "logits_scaling = 8.0"),
    "cohere": ("Cohere", {"logit_scale": 0.0625}, "logit_scale = 0.0625"),
    "qwen3_5_text": (
        "Qwen3_5",
        {**HEADS, "layer_types": ["full_attention", "linear_attention"]},
        "layer_types = linear_attention",
    ),
}


def made(kind: str, more: dict) -> transformers.PreTrainedModel:
    """A random model of transformers' classes `kind`."""
    maker = getattr(transformers, f"{kind}TextConfig", None) or getattr(transformers, f"{kind}Config")
    torch.manual_seed(0)
    return getattr(transformers, f"{kind}ForCausalLM")(maker(**SIZES, **more)).eval()


def difference(model: transformers.PreTrainedModel) -> float:
    """The largest difference of a vote's log-probs from those of the model that reads the vote alone."""
    judgements = judged(3)
    (row,) = reward_rows(verdicts(judgements), "step")
    alone = [separate_logprobs(model, j.prompt_ids, v.response_ids) for j in judgements for v in j.votes]
    return largest(row_logprobs(model, [row]) - torch.cat(alone))


@pytest.mark.parametrize(("kind", "more"), ALLOWED.values(), ids=ALLOWED)
def test_a_model_that_is_allowed_has_the_log_probs_of_its_own_logits(kind, more):
    model = made(kind, more)
    assert why_untrainable(model.config.to_dict()) == ""
    assert difference(model) < EXACT


@pytest.mark.parametrize(("kind", "more", "said"), REFUSED.values(), ids=REFUSED)
def test_a_model_is_refused_whose_log_probs_would_be_another_model_s(kind, more, said):
    model = made(kind, more)
    assert f"config.json has {said}, " in why_untrainable(model.config.to_dict())
    assert difference(model) > 10 * EXACT


@pytest.mark.parametrize(
    "fields",
    [
        {
            "model_type": "qwen2",
            "sliding_window": 32768,
            "use_sliding_window": False,
            "max_window_layers": 21,
        },
        {"model_type": "qwen2", "sliding_window": 32768},
        {"model_type": "qwen3", "sliding_window": None, "use_sliding_window": False},
        {"model_type": "phi3", "sliding_window": 262144, "max_position_embeddings": 131072},
        {"model_type": "llama"},
        {"model_type": "mistral3", "text_config": {"sliding_window": None}},
    ],
)
def test_a_config_json_that_says_nothing_against_it_is_allowed(fields):
    assert why_untrainable(fields) == ""


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"text_config": {"sliding_window": 512, "max_position_embeddings": 32768}}, "sliding_window = 512"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "layer_types = sliding_attention"),
        ({"sliding_window": "wide"}, "sliding_window = wide"),
        ({"model_type": "mpt"}, "model_type = mpt"),
        ({"model_type": "new", "ssm_state_size": 128}, "ssm_state_size = 128"),
    ],
)
def test_a_config_json_that_says_it_is_refused(fields, said):
    why = why_untrainable(fields)
    assert said in why
    assert "; allowed: " in why


@pytest.mark.parametrize("kind", [k for k in OTHERS if k in transformers.CONFIG_MAPPING])
def test_models_of_transformers_with_other_layers_are_refused(kind):
    assert why_untrainable(transformers.CONFIG_MAPPING[kind]().to_dict())
