"""Gradient checkpointing: a layer keeps its input alone and is computed again in the backward pass.

It is that of transformers, whose layers do it where they are in training mode. All models here stay in evaluation mode,
so that nothing is dropped out: only the layers themselves are set to training mode, and only while a model learns.
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
    """Prepare a model for `recomputing`. Raises `ConfigError` for one whose layers cannot be computed again alike."""
    name = type(model).__name__
    if not model.supports_gradient_checkpointing or not _layers(model):
        raise ConfigError(f"{KEY} = true: transformers has none for {name}; set it to false")
    dropping = {
        f"{key} = {value}"
        for layer in _layers(model)
        for key, value in vars(layer).items()
        if "drop" in key and isinstance(value, int | float) and value
    }
    if dropping:
        raise ConfigError(
            f"{KEY} = true: the layers of {name} would drop out activations ({', '.join(sorted(dropping))}), which "
            "nothing here corrects for; set it to false"
        )
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", FutureWarning
        )  # its new name is younger than the oldest version allowed
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})


@contextmanager
def recomputing(model: PreTrainedModel, wanted: bool) -> Iterator[None]:
    """Within it forward and backward passes of a prepared model keep the inputs of its layers alone."""
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
