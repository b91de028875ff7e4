"""Gradient checkpointing: a layer stores only its input and is computed again in the backward pass.

Transformers implements it. Its layers use it only in training mode. All models here stay in evaluation mode, so that
there is no dropout. So only the layers, without their submodules, are set to training mode while a model learns.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from rlanything.core.errors import ConfigError

KEY = "learn.gradient_checkpointing"


def allow_recomputing(model: PreTrainedModel) -> None:
    """Prepare a model for `recomputing`.

    Raises `ConfigError` for a model without gradient checkpointing, and for layers with dropout of their own.
    """
    name = type(model).__name__
    if not model.supports_gradient_checkpointing or not _layers(model):
        raise ConfigError(f"{KEY}: transformers has no gradient checkpointing for {name}; set it to false")
    dropping = {
        f"{key} = {value}"
        for layer in _layers(model)
        for key, value in vars(layer).items()
        if "drop" in key and isinstance(value, int | float) and value
    }
    if dropping:
        raise ConfigError(
            f"{KEY}: the layers of {name} would apply dropout ({', '.join(sorted(dropping))}), which "
            "this project does not support; set it to false"
        )
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", FutureWarning
        )  # the new name is missing in the oldest transformers allowed
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    # transformers also lets gradients flow into the embeddings, those of pictures among them. Only reentrant
    # checkpointing needs that. Here it would keep the layers of a frozen vision tower and compute them twice.
    model.disable_input_require_grads()


@contextmanager
def recomputing(model: PreTrainedModel, wanted: bool) -> Iterator[None]:
    """Within it, a model prepared by `allow_recomputing` stores only the inputs of its layers, if `wanted`."""
    layers = _layers(model) if wanted else []
    for layer in layers:
        layer.training = True
    try:
        yield
    finally:
        for layer in layers:
            layer.training = False


def _layers(model: PreTrainedModel) -> list[GradientCheckpointingLayer]:
    return [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]
