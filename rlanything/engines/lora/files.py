"""LoRA's weights as files in the format of peft: `PeftModel.from_pretrained(base, folder)` reads them."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from rlanything.config import LoraConfig
from rlanything.core.errors import ConfigError
from rlanything.engines.lora.injection import NAME
from rlanything.files.atomic import make
from rlanything.files.reader import read_object
from rlanything.files.records import write_json

WEIGHTS, SETTINGS = "adapter_model.safetensors", "adapter_config.json"
PREFIX = "base_model.model."
"""What peft puts before the name of a weight."""


def save_lora(model: PreTrainedModel, folder: Path, base: str) -> None:
    """Write LoRA's weights and their settings. Equal weights give equal bytes.

    base: what the settings name as the model that the weights belong to.
    """
    make(folder)
    weights = {name: value.to("cpu").contiguous() for name, value in _own(model).items()}
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    model.peft_config[NAME].save_pretrained(str(folder))
    settings = read_object(folder / SETTINGS)
    settings["base_model_name_or_path"] = base
    settings["target_modules"].sort()  # peft keeps them in a set, whose order is random
    write_json(folder / SETTINGS, settings)


@torch.no_grad()
def load_lora(model: PreTrainedModel, folder: Path, settings: LoraConfig, base: str) -> None:
    """Give LoRA's weights of a model the values that `save_lora` wrote.

    settings, base: as the configuration has them now. Raises `ConfigError` where the weights were trained with others,
    for a file that cannot be read, and for weights of other names or shapes than the model's.
    """
    known = read_object(folder / SETTINGS, "train again")
    wanted = {"r": settings.rank, "lora_alpha": settings.alpha, "base_model_name_or_path": base}
    for name, value in wanted.items():
        if known.get(name) != value:
            raise ConfigError(
                f"{folder / SETTINGS}: {name} = {known.get(name)!r}, and the configuration has {value!r}; put the "
                "configuration back, or train again"
            )
    file = folder / WEIGHTS
    try:
        stored = load_file(file)
    except (OSError, SafetensorError) as error:
        raise ConfigError(f"{file}: LoRA's weights cannot be read ({error}); train again") from None
    own = _own(model)
    wrong = own.keys() ^ stored.keys() or {name for name in own if own[name].shape != stored[name].shape}
    if wrong:
        raise ConfigError(
            f"{file}: these are not LoRA's weights of this model and its configuration: {min(wrong)}; train again"
        )
    for name, value in own.items():
        value.copy_(stored[name])


def _own(model: PreTrainedModel) -> dict[str, Tensor]:
    """LoRA's weights of a model, the tensors themselves, by the names that files have."""
    return {PREFIX + name: value for name, value in model.get_adapter_state_dict(NAME).items()}
