"""Tiny random models and a real byte-level tokenizer for the engine tests."""

from __future__ import annotations

from functools import cache

import torch
from tokenizers import Tokenizer, pre_tokenizers, trainers
from tokenizers import models as tokenizer_models
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2Tokenizer,
)

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
QWEN25 = (
    "{%- if messages[0]['role'] == 'system' %}{{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}"
    "{%- else %}{{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}{%- endif %}"
    "{%- for message in messages %}{%- if (message.role == 'user') or (message.role == 'system' and not loop.first)"
    " or (message.role == 'assistant') %}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CORPUS = [
    "system\nYou are a helpful assistant.\nuser\nYour task is to put a clean mug on the desk.\nassistant\n",
    "You see a lamp, a mug and a closed drawer. go to desk 1\ntake mug 2 from desk 1\nopen drawer 3\nNothing happens.\n",
]
VOCABULARY = 360


@cache
def tokenizer(template: str = CHATML) -> Qwen2Tokenizer:
    """Byte-level BPE as Qwen2's, with `<|im_end|>` as the end of turn and the three special ids first."""
    backend = Tokenizer(tokenizer_models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(CORPUS * 4, trainer)
    learned = Qwen2Tokenizer(
        vocab=backend.get_vocab(),
        merges=_merges(backend),
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        extra_special_tokens=["<|im_start|>"],
    )
    learned.chat_template = template
    return learned


def _merges(backend: Tokenizer) -> list[tuple[str, str]]:
    import json

    return [tuple(pair) for pair in json.loads(backend.to_str())["model"]["merges"]]


SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}


def qwen2(seed: int = 0, kv_heads: int = 2, tied: bool = True) -> PreTrainedModel:
    """A random Qwen2 whose logits are far from uniform."""
    torch.manual_seed(seed)
    config = Qwen2Config(
        **SIZES,
        num_key_value_heads=kv_heads,
        tie_word_embeddings=tied,
        vocab_size=VOCABULARY,
        max_position_embeddings=1024,
        initializer_range=0.1,
    )
    return scramble(Qwen2ForCausalLM(config)).eval()


def llama(seed: int = 0, kv_heads: int = 4, tied: bool = False, bias: bool = False) -> PreTrainedModel:
    """A random Llama; `bias` adds biases to attention and MLP."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        **SIZES,
        num_key_value_heads=kv_heads,
        tie_word_embeddings=tied,
        vocab_size=VOCABULARY,
        max_position_embeddings=1024,
        initializer_range=0.1,
        attention_bias=bias,
        mlp_bias=bias,
        rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
    )
    return scramble(LlamaForCausalLM(config)).eval()


def scramble(model: PreTrainedModel) -> PreTrainedModel:
    """Give norms and biases random values: fresh ones are all equal and would hide mistakes."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.3)
    return model


def reference_logprobs(
    model: PreTrainedModel, prompt: tuple[int, ...], response: tuple[int, ...]
) -> torch.Tensor:
    """Log-probs TV of the module itself before each response token."""
    with torch.no_grad():
        logits = model(torch.tensor([prompt + response])).logits[0]
    return logits[len(prompt) - 1 : -1].log_softmax(-1)
