"""LoRA's weights as files that peft reads: `PeftModel.from_pretrained(base, folder)`."""

from __future__ import annotations

from pathlib import Path

from safetensors.torch import save_file
from transformers import PreTrainedModel

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
    own = model.get_adapter_state_dict(NAME)
    weights = {PREFIX + name: value.to("cpu").contiguous() for name, value in own.items()}
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    model.peft_config[NAME].save_pretrained(str(folder))
    settings = read_object(folder / SETTINGS)
    settings["base_model_name_or_path"] = base
    settings["target_modules"].sort()  # peft keeps them in a set, whose order is random
    write_json(folder / SETTINGS, settings)
