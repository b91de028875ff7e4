"""Several models over the same frozen weights, which are in memory once."""

from __future__ import annotations

import copy

from transformers import PreTrainedModel


def twin(model: PreTrainedModel) -> PreTrainedModel:
    """A second model with the same tensors. Modules can be added to one without the other, weights cannot be changed.

    The weights must be frozen: an optimizer of one would change both.
    """
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    made: PreTrainedModel = copy.deepcopy(model, shared)
    return made
