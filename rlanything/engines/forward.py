"""The Qwen2 / Llama forward pass over weights fused from a live Hugging Face module, tuned for small batches on CPU.

Letters in shapes: B rows (branches), E trunks, R rows per trunk, S new tokens per row, N new tokens of all rows
packed without padding, T cached tokens, H query heads, K key-value heads, G = H / K, D head size, M model width,
V vocabulary.

Differences from the module that change nothing but the speed: q, k, v and gate, up are one matrix each; q is
pre-scaled by D^-0.5; the two halves of each rotary head are interleaved, so that the rotation is one complex product.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional
from transformers import LlamaForCausalLM, PreTrainedModel, Qwen2ForCausalLM


@dataclass(frozen=True, slots=True)
class Layer:
    """One decoder layer: matrices are (out, in); a bias is None where the architecture has none."""

    attention_norm: Tensor
    qkv: Tensor
    qkv_bias: Tensor | None
    out: Tensor
    out_bias: Tensor | None
    mlp_norm: Tensor
    gate_up: Tensor
    gate_up_bias: Tensor | None
    down: Tensor
    down_bias: Tensor | None


@dataclass(frozen=True, slots=True)
class Weights:
    """A whole model, ready for `forward`. `context` is the number of positions that the model was made for."""

    embed: Tensor
    layers: tuple[Layer, ...]
    norm: Tensor
    head: Tensor
    heads: int
    kv_heads: int
    head_size: int
    eps: float
    rope_theta: float
    context: int


def check_supported(model: PreTrainedModel) -> None:
    """Raise `ValueError` naming what this forward pass does not implement."""
    name = type(model).__name__
    advice = "use the transformers engine for it"
    if not isinstance(model, Qwen2ForCausalLM | LlamaForCausalLM):
        raise ValueError(f"the native engine does not implement {name}: {advice}")
    rope = model.config.rope_parameters["rope_type"]
    if rope != "default":
        raise ValueError(f"the native engine does not implement {name} with rope scaling {rope!r}: {advice}")
    if model.config.hidden_act != "silu":
        raise ValueError(
            f"the native engine does not implement {name} with {model.config.hidden_act}: {advice}"
        )
    if isinstance(model, Qwen2ForCausalLM) and "sliding_attention" in model.config.layer_types:
        raise ValueError(f"the native engine does not implement {name} with sliding windows: {advice}")


def fuse(model: PreTrainedModel, dtype: torch.dtype) -> Weights:
    """Copies of the module's weights as they are now. Raises `ValueError` for an unsupported architecture."""
    check_supported(model)
    assert isinstance(model, Qwen2ForCausalLM | LlamaForCausalLM)
    config = model.config
    heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
    head_size = model.model.layers[0].self_attn.head_dim
    with torch.no_grad():
        layers = tuple(_fuse_layer(layer, heads, kv_heads, head_size, dtype) for layer in model.model.layers)
        embed = model.model.embed_tokens.weight.detach().to(dtype, copy=True)
        tied = model.lm_head.weight is model.model.embed_tokens.weight
        head = embed if tied else model.lm_head.weight.detach().to(dtype, copy=True)
        norm = model.model.norm.weight.detach().to(dtype, copy=True)
    theta = float(config.rope_parameters["rope_theta"])
    context = int(config.max_position_embeddings)
    return Weights(embed, layers, norm, head, heads, kv_heads, head_size, config.rms_norm_eps, theta, context)


def _fuse_layer(
    layer: torch.nn.Module, heads: int, kv_heads: int, head_size: int, dtype: torch.dtype
) -> Layer:
    attention, mlp = layer.self_attn, layer.mlp
    qkv = [attention.q_proj, attention.k_proj, attention.v_proj]
    fused, bias = _concatenate(qkv, dtype), _concatenate_bias(qkv, dtype)
    for tensor in (fused, bias):
        if tensor is not None:
            tensor[: heads * head_size] *= head_size**-0.5
            _interleave(tensor[: (heads + kv_heads) * head_size], head_size)
    return Layer(
        attention_norm=layer.input_layernorm.weight.to(dtype, copy=True),
        qkv=fused,
        qkv_bias=bias,
        out=_concatenate([attention.o_proj], dtype),
        out_bias=_concatenate_bias([attention.o_proj], dtype),
        mlp_norm=layer.post_attention_layernorm.weight.to(dtype, copy=True),
        gate_up=_concatenate([mlp.gate_proj, mlp.up_proj], dtype),
        gate_up_bias=_concatenate_bias([mlp.gate_proj, mlp.up_proj], dtype),
        down=_concatenate([mlp.down_proj], dtype),
        down_bias=_concatenate_bias([mlp.down_proj], dtype),
    )


def _concatenate(linears: list[torch.nn.Linear], dtype: torch.dtype) -> Tensor:
    return torch.cat([linear.weight.detach() for linear in linears]).to(dtype)


def _concatenate_bias(linears: list[torch.nn.Linear], dtype: torch.dtype) -> Tensor | None:
    biases = [linear.bias.detach() for linear in linears if linear.bias is not None]
    return torch.cat(biases).to(dtype) if biases else None


def _interleave(rows: Tensor, head_size: int) -> None:
    """In place: order each head's rows 0, D/2, 1, D/2+1, ... so that rotary pairs are neighbours."""
    halves = rows.view(-1, 2, head_size // 2, *rows.shape[1:])
    rows.copy_(halves.transpose(1, 2).reshape(rows.shape))


class Rotary:
    """The table of rotary angles, grown on demand; entry p is cos + i sin of the angles at position p."""

    def __init__(self, weights: Weights) -> None:
        exponents = torch.arange(0, weights.head_size, 2, dtype=torch.float32) / weights.head_size
        self._frequencies = 1.0 / (weights.rope_theta**exponents)
        self._table = torch.empty(0, 1, weights.head_size // 2, dtype=torch.complex64)

    def at(self, positions: Tensor, end: int) -> Tensor:
        """Angles for positions N, all below `end`; shape N1(D/2), complex."""
        if end > len(self._table):
            steps = torch.arange(max(end, 2 * len(self._table), 256), dtype=torch.float32)
            angles = torch.outer(steps, self._frequencies)
            self._table = torch.polar(torch.ones_like(angles), angles).unsqueeze(1)
        return self._table[positions]


def project_qkv(
    layer: Layer, weights: Weights, hidden: Tensor, angles: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries NHD (rotated, scaled), keys NKD (rotated) and values NKD of hidden states NM."""
    normed = functional.rms_norm(hidden, (hidden.shape[-1],), layer.attention_norm, weights.eps)
    heads, kv_heads, size = weights.heads, weights.kv_heads, weights.head_size
    qkv = functional.linear(normed, layer.qkv, layer.qkv_bias).view(-1, heads + 2 * kv_heads, size)
    rotated = qkv[:, : heads + kv_heads]
    if qkv.dtype is torch.float32:
        torch.view_as_complex(rotated.unflatten(-1, (-1, 2))).mul_(angles)
    else:
        pairs = torch.view_as_complex(rotated.float().unflatten(-1, (-1, 2)))
        rotated.copy_(torch.view_as_real(pairs * angles).flatten(-2))
    return qkv[:, :heads], qkv[:, heads : heads + kv_heads], qkv[:, heads + kv_heads :]


def finish_layer(layer: Layer, weights: Weights, hidden: Tensor, attended: Tensor) -> Tensor:
    """Hidden states NM after the output projection of `attended` N(HD) and the gated MLP."""
    hidden = hidden + functional.linear(attended, layer.out, layer.out_bias)
    normed = functional.rms_norm(hidden, (hidden.shape[-1],), layer.mlp_norm, weights.eps)
    gate, up = functional.linear(normed, layer.gate_up, layer.gate_up_bias).chunk(2, -1)
    return hidden.add_(functional.linear(functional.silu(gate).mul_(up), layer.down, layer.down_bias))


def logits(weights: Weights, hidden: Tensor) -> Tensor:
    """Logits BV of final hidden states BM."""
    normed = functional.rms_norm(hidden, (hidden.shape[-1],), weights.norm, weights.eps)
    return functional.linear(normed, weights.head)
