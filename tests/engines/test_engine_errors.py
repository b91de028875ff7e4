"""What cannot be served is refused before anything is sampled, in words that help."""

from __future__ import annotations

import engine_cases as cases
import pytest
import torch
from torch import nn

from rlanything.core.protocols import Engine
from rlanything.core.types import Request
from rlanything.engines.native import NativeEngine
from rlanything.engines.transformers import TransformersEngine

LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}


@pytest.fixture(scope="module", params=[NativeEngine, TransformersEngine])
def engine(request):
    return request.param(cases.qwen2(), cases.tokenizer())


def test_nothing_to_do(engine: Engine):
    assert engine.generate([]) == []
    engine.release(["nobody"])
    engine.sync()
    engine.close()


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


def test_number_formats_that_native_does_not_implement():
    with pytest.raises(ValueError, match="float32 or bfloat16"):
        NativeEngine(cases.qwen2(), cases.tokenizer(), dtype=torch.float16)


def test_models_that_do_not_generate():
    with pytest.raises(ValueError, match="Linear cannot generate"):
        TransformersEngine(nn.Linear(2, 2), cases.tokenizer())


@pytest.mark.parametrize("kind", [NativeEngine, TransformersEngine])
def test_a_batch_has_at_least_one_row(kind):
    with pytest.raises(ValueError, match="max_batch must be at least 1"):
        kind(cases.qwen2(), cases.tokenizer(), max_batch=0)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Request((), 0, 4), "0 prompt tokens"),
        (Request((5,), 0, 0), "max_tokens of at least 1"),
        (Request((5,), 0, 4, -0.5), "temperature of at least 0"),
        (Request((5, cases.VOCABULARY), 0, 4), "outside the vocabulary of 360"),
        (Request((5, -1), 0, 4), "outside the vocabulary"),
        (Request((5,), 0, 4, choices=((5, 999),)), "outside the vocabulary"),
        (Request((5,), 0, 4, choices=((5,), (5, 6))), "prefix"),
    ],
)
def test_requests_that_cannot_be_served(engine, request_, words):
    with pytest.raises(ValueError, match=words):
        engine.generate([Request((5,), 0, 1), request_])


def test_positions_that_the_model_does_not_have():
    engine = NativeEngine(cases.qwen2(), cases.tokenizer())
    assert len(engine.generate([Request((5,) * 500, 0, 12)])) == 1
    with pytest.raises(ValueError, match="513 positions; the model has 512"):
        engine.generate([Request((5,) * 500, 0, 13)])


def test_diverged_weights_are_named(engine):
    model = cases.qwen2()
    model.model.norm.weight.data[0] = float("nan")
    with pytest.raises(ValueError, match="not finite"):
        type(engine)(model, cases.tokenizer()).generate([Request((5, 6), 0, 2)])
