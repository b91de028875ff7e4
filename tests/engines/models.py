"""Tiny random models and tokenizers for the engine tests."""

from __future__ import annotations

import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
WORDS = tuple(
    "go take put open close look to from in on the a you see nothing happens task is lamp mug desk".split()
)


def tokenizer(template: str = CHATML) -> PreTrainedTokenizerFast:
    """Words, line ends and three special tokens; unknown words become `<unk>`."""
    pieces = [*SPECIAL, "<unk>", "\n", "system", "user", "assistant", *WORDS, *map(str, range(20))]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"\n|[^\s]+"), "removed", invert=True)
    backend.add_special_tokens(list(SPECIAL))
    fast = PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<|im_end|>", pad_token="<|endoftext|>", unk_token="<unk>"
    )
    fast.chat_template = template
    return fast


SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}


def qwen2(seed: int = 0, kv_heads: int = 2, tied: bool = True, vocabulary: int = 60) -> PreTrainedModel:
    """A random Qwen2 whose logits are far from uniform."""
    torch.manual_seed(seed)
    config = Qwen2Config(
        **SIZES,
        num_key_value_heads=kv_heads,
        tie_word_embeddings=tied,
        vocab_size=vocabulary,
        max_position_embeddings=1024,
        initializer_range=0.2,
    )
    return scramble(Qwen2ForCausalLM(config)).eval()


def llama(seed: int = 0, kv_heads: int = 4, tied: bool = False, bias: bool = False) -> PreTrainedModel:
    """A random Llama; `bias` adds biases to attention and MLP."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        **SIZES,
        num_key_value_heads=kv_heads,
        tie_word_embeddings=tied,
        vocab_size=60,
        max_position_embeddings=1024,
        initializer_range=0.2,
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
