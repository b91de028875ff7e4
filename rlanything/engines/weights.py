"""The weights of a live Hugging Face Qwen2 or Llama module, in the form that `forward` uses.

q, k and v become one matrix; gate and up become one matrix. The rows of q and k are reordered, so that a rotation is
one complex product. Up to rounding, the results stay the same. Letters in shapes: see `forward`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import LlamaForCausalLM, PreTrainedModel, Qwen2ForCausalLM

from rlanything.engines.lora.merging import merged_parameters


@dataclass(frozen=True, slots=True)
class Layer:
    """One decoder layer: matrices are (out, in); a bias is None where the architecture has none.

    q is pre-scaled by D^-0.5, and the two halves of each rotary head are interleaved.
    """

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
    """Raise `ValueError` for a model that `forward` does not implement. The message names what is missing."""
    name, config = type(model).__name__, model.config
    problem = ""
    if not isinstance(model, Qwen2ForCausalLM | LlamaForCausalLM):
        problem = "this architecture"
    elif config.rope_parameters["rope_type"] != "default":
        problem = f"rope scaling {config.rope_parameters['rope_type']!r}"
    elif config.hidden_act != "silu":
        problem = f"the activation {config.hidden_act!r}"
    elif isinstance(model, Qwen2ForCausalLM) and "sliding_attention" in (config.layer_types or ()):
        problem = "sliding windows"
    elif model.device.type != "cpu":
        problem = f"the device {model.device.type!r}"
    if problem:
        raise ValueError(
            f"the native engine cannot run {name}: {problem} is not implemented; use engine=transformers"
        )


def fuse(model: PreTrainedModel) -> Weights:
    """A copy of the module's current weights, as float32.

    Raises `ValueError` for a model that `forward` does not implement.
    """
    check_supported(model)
    reader, config = _Reader(model), model.config
    heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
    layers = [
        reader.layer(f"model.layers.{index}", heads, kv_heads) for index in range(config.num_hidden_layers)
    ]
    embed = reader.weight("model", "embed_tokens")
    return Weights(
        embed=embed,
        layers=tuple(layers),
        norm=reader.weight("model", "norm"),
        head=reader.weight("", "lm_head") if "lm_head.weight" in reader else embed,
        heads=heads,
        kv_heads=kv_heads,
        head_size=len(layers[0].qkv) // (heads + 2 * kv_heads),
        eps=config.rms_norm_eps,
        rope_theta=float(config.rope_parameters["rope_theta"]),
        context=config.max_position_embeddings,
    )


class _Reader:
    """Reads named parameters of a module into the form that `forward` uses."""

    def __init__(self, model: PreTrainedModel) -> None:
        # Shared parameters are listed once: a tied head is not in here.
        self._parameters = merged_parameters(model)

    def __contains__(self, name: str) -> bool:
        return name in self._parameters

    def weight(self, prefix: str, *names: str) -> Tensor:
        """A copy of several weights, concatenated along their rows."""
        return torch.cat(
            [self._parameters[f"{prefix}.{name}.weight".removeprefix(".")] for name in names]
        ).float()

    def bias(self, prefix: str, *names: str) -> Tensor | None:
        """A copy of several biases, concatenated; None when the architecture has none."""
        found = [self._parameters.get(f"{prefix}.{name}.bias") for name in names]
        present = [bias for bias in found if bias is not None]
        return torch.cat(present).float() if present else None

    def layer(self, prefix: str, heads: int, kv_heads: int) -> Layer:
        """All of one decoder layer."""
        attention, mlp = f"{prefix}.self_attn", f"{prefix}.mlp"
        qkv, gate_up = ("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj")
        layer = Layer(
            attention_norm=self.weight(prefix, "input_layernorm"),
            qkv=self.weight(attention, *qkv),
            qkv_bias=self.bias(attention, *qkv),
            out=self.weight(attention, "o_proj"),
            out_bias=self.bias(attention, "o_proj"),
            mlp_norm=self.weight(prefix, "post_attention_layernorm"),
            gate_up=self.weight(mlp, *gate_up),
            gate_up_bias=self.bias(mlp, *gate_up),
            down=self.weight(mlp, "down_proj"),
            down_bias=self.bias(mlp, "down_proj"),
        )
        size = len(layer.qkv) // (heads + 2 * kv_heads)
        for tensor in (layer.qkv, layer.qkv_bias):
            if tensor is not None:
                tensor[: heads * size] *= size**-0.5
                _interleave(tensor[: (heads + kv_heads) * size], size)
        return layer


def _interleave(rows: Tensor, head_size: int) -> None:
    """In place: order each head's rows 0, D/2, 1, D/2+1, ... so that rotary pairs are neighbours."""
    halves = rows.view(-1, 2, head_size // 2, *rows.shape[1:])
    rows.copy_(halves.transpose(1, 2).reshape(rows.shape))
