"""Embedded models before they have learned anything."""

from __future__ import annotations

import math

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from rlanything.config import Architecture


def fresh_model(architecture: Architecture, vocab: int, end: int, pad: int, seed: int) -> Qwen2ForCausalLM:
    """A randomly initialised Qwen2 of the declared size, whose layers add nothing yet.

    The matrices that write to the residual stream begin at zero (Zhang et al. 2019, Fixup, arXiv 1901.09321). With
    random ones the layers drown the embedding: its norm is 0.7, and theirs is ten times as large. Such a model learns
    late to look up what it has read.
    """
    config = Qwen2Config(
        vocab_size=vocab,
        hidden_size=architecture.hidden,
        intermediate_size=architecture.intermediate,
        num_hidden_layers=architecture.layers,
        num_attention_heads=architecture.heads,
        num_key_value_heads=architecture.kv_heads,
        max_position_embeddings=architecture.positions,
        initializer_range=0.7 / math.sqrt(architecture.hidden),
        tie_word_embeddings=True,
        eos_token_id=end,
        pad_token_id=pad,
        bos_token_id=None,
    )
    torch.manual_seed(seed)
    model = Qwen2ForCausalLM(config)
    for layer in model.model.layers:
        torch.nn.init.zeros_(layer.self_attn.o_proj.weight)
        torch.nn.init.zeros_(layer.mlp.down_proj.weight)
    return model
