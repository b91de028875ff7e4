"""The weights of a model as an engine takes them over: with LoRA, each product is added to its matrix.

Without LoRA they are the model's own. Nothing here changes the model, so the frozen weights keep their bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from rlanything.engines.lora.injection import FACTORS, NAME

_INSIDE = ".base_layer."
"""In a name: a frozen weight in the layer that peft puts in its place."""


def has_lora(model: PreTrainedModel) -> bool:
    """Whether the model has LoRA's weights."""
    return bool(model._hf_peft_config_loaded)


def lora_rank(model: PreTrainedModel) -> int:
    """The rank of LoRA's weights; 0: the model has none."""
    settings: Any = model.peft_config[NAME] if has_lora(model) else None
    return 0 if settings is None else int(settings.r)


def merged_parameters(model: PreTrainedModel) -> Mapping[str, Tensor]:
    """The parameters by the names that they have without LoRA. A tied weight has one name."""
    return _merged(model, {name: parameter.detach() for name, parameter in model.named_parameters()})


def merged_state(model: PreTrainedModel) -> Mapping[str, Tensor]:
    """The whole state by the names that it has without LoRA. A tied weight has all of its names."""
    return _merged(model, model.state_dict())


def frozen_state(model: PreTrainedModel) -> Mapping[str, Tensor]:
    """The whole state without LoRA's weights, by the names that it has without LoRA.

    A tied weight has all of its names. Without LoRA it is the model's own state.
    """
    return _frozen(model.state_dict())


@torch.no_grad()
def merge(model: PreTrainedModel, plain: PreTrainedModel) -> None:
    """Give `plain`, the same model without LoRA, the merged weights, in float32 and on the CPU.

    Tensors that it shares with other models are left as they are: it gets its own.
    """
    state = {name: value.to("cpu", torch.float32) for name, value in merged_state(model).items()}
    plain.load_state_dict(state, assign=True)
    plain.tie_weights()


def _merged(model: PreTrainedModel, values: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    return _Merged(model, values) if has_lora(model) else values


def _frozen(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Without LoRA's weights, by the names of a model without LoRA."""
    return {
        name.replace(_INSIDE, "."): value
        for name, value in values.items()
        if not any(f".{factor}." in name for factor in FACTORS)
    }


class _Merged(Mapping[str, Tensor]):
    """Merged weights, each computed when it is asked for: all of them at once would be a second model.

    Those with a product are float32, whatever the format of the model.
    """

    def __init__(self, model: PreTrainedModel, values: Mapping[str, Tensor]) -> None:
        from peft.tuners.lora import Linear

        self._layers = {name: m for name, m in model.named_modules() if isinstance(m, Linear)}
        self._values = _frozen(values)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    @torch.no_grad()
    def __getitem__(self, name: str) -> Tensor:
        value = self._values[name]
        module, _, kind = name.rpartition(".")
        layer = self._layers.get(module)
        if layer is None or kind != "weight":
            return value
        product: Tensor = layer.get_delta_weight(NAME)
        return value.float() + product
