"""Puts LoRA's weights into a model. peft computes with them; which matrices have them and how they start is said here.

They are float32, whatever the number format of the frozen weights: a small update would be lost in bfloat16. There is
no dropout, because log-probs would no longer be those of the sampler.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import Linear, Module
from transformers import PreTrainedModel

from rlanything.config import LoraConfig
from rlanything.core.errors import ConfigError

NAME = "default"
"""The name of LoRA's weights in the model, which is peft's own."""
FACTORS = ("lora_A", "lora_B")
"""The factors A and B of a product, as peft names their modules. B starts at 0."""


def check_installed(key: str) -> None:
    """Raise `ConfigError` unless peft is installed. key: the key of the configuration that needs it."""
    if importlib.util.find_spec("peft") is None:
        raise ConfigError(
            f"{key}: needs peft, which is not installed; install it with `pip install '.[lora]'`"
        )


def inject(model: PreTrainedModel, settings: LoraConfig, seed: int, key: str) -> None:
    """Freeze a model and put LoRA's weights beside its targets. The model computes what it computed before.

    Args:
        model: on the device where it trains. It is changed in place.
        seed: of the first values, which depend on it alone, on every device.
        key: the key of `settings`, for messages.

    Raises `ConfigError` when peft is missing, for a target that the model does not have, and for too high a rank.
    """
    check_installed(key)
    names = _targets(model, settings, key)
    from peft import LoraConfig as PeftConfig

    wanted = PeftConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        target_modules=names,
        lora_dropout=0.0,
        bias="none",
        init_lora_weights=False,
    )
    with torch.random.fork_rng(devices=[]):  # its own first values are drawn, and replaced
        model.add_adapter(wanted, NAME)
    _start(model, seed)
    model.eval()


def trained(model: Module) -> Mapping[str, Tensor]:
    """The parameters that an optimizer changes, by name: with LoRA its weights, otherwise all."""
    return {name: value for name, value in model.named_parameters() if value.requires_grad}


@torch.no_grad()
def take_over(model: Module, weights: Mapping[str, Tensor]) -> None:
    """Give LoRA's weights other values. Raises `ValueError` unless `weights` has exactly their names."""
    own = trained(model)
    if own.keys() != weights.keys():
        odd = sorted(own.keys() ^ weights.keys())[:3]
        raise ValueError(f"these are not LoRA's weights of this model: {', '.join(odd)}")
    for name, value in own.items():
        value.copy_(weights[name])


def _targets(model: PreTrainedModel, settings: LoraConfig, key: str) -> list[str]:
    """The full names of the matrices that LoRA trains: those of the decoder with the names in `targets`."""
    inside = {id(module) for module in model.get_decoder().modules()}
    matrices = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, Linear) and id(module) in inside
    }
    present = {name.rpartition(".")[2] for name in matrices}
    for target in settings.targets:
        if target not in present:
            raise ConfigError(
                f"{key}.targets = {target}: {type(model).__name__} has no such matrix; it has "
                f"{', '.join(sorted(present)) or 'none that LoRA could train'}"
            )
    chosen = {name: m for name, m in matrices.items() if name.rpartition(".")[2] in settings.targets}
    name, least = min(
        ((name, min(m.in_features, m.out_features)) for name, m in chosen.items()), key=lambda x: x[1]
    )
    if settings.rank > least:
        raise ConfigError(
            f"{key}.rank = {settings.rank}: must be at most {least}, the smaller side of {name}; the product would "
            "have more weights than the matrix"
        )
    return list(chosen)


@torch.no_grad()
def _start(model: Module, seed: int) -> None:
    """Give LoRA's weights their first values: random ones for A, as a linear layer has them, and 0 for B."""
    generator = torch.Generator().manual_seed(seed % (1 << 63))
    for name, weight in trained(model).items():
        first = torch.zeros(weight.shape)
        if FACTORS[1] not in name.split("."):
            torch.nn.init.kaiming_uniform_(first, a=math.sqrt(5), generator=generator)
        weight.data = first.to(weight.device)
