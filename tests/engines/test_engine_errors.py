"""Models and number formats that an engine does not have are refused by name."""

from __future__ import annotations

import engine_cases as cases
import pytest
from torch import nn

from rlanything.core.types import Request
from rlanything.engines.native import NativeEngine
from rlanything.engines.transformers import TransformersEngine

LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda: cases.llama(rope_parameters=LINEAR), "LlamaForCausalLM: rope scaling 'linear'"),
        (lambda: cases.llama(hidden_act="gelu"), "the activation 'gelu'"),
        (
            lambda: cases.qwen2(use_sliding_window=True, sliding_window=8, max_window_layers=1),
            "sliding windows",
        ),
    ],
)
def test_models_that_native_does_not_implement(model, words):
    with pytest.raises(ValueError, match=words):
        NativeEngine(model(), cases.tokenizer())
    TransformersEngine(model(), cases.tokenizer()).generate([Request((5, 6), 0, 2)])


def test_models_that_do_not_generate():
    with pytest.raises(ValueError, match="Linear cannot generate"):
        TransformersEngine(nn.Linear(2, 2), cases.tokenizer())
