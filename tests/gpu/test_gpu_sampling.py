"""The engine `transformers` on a GPU: the ids of the CPU, and log-probs that the trainer finds again."""

from __future__ import annotations

import copy
import random

import engine_cases as cases
import pytest
import torch
from sight_cases import KINDS, NAMES, PICTURES, folder, prompt

from rlanything.core.types import Request
from rlanything.engines import checkpoint
from rlanything.engines.placement import exact_convolutions
from rlanything.engines.sight import eyes as sight
from rlanything.engines.transformers import TransformersEngine

ROUNDING = {torch.float32: 1e-4, torch.bfloat16: 0.3}
"""In log-probs, of models whose logits are far from uniform. bfloat16 has 8 bits."""
MODELS = {"qwen2": cases.qwen2, "llama": cases.llama}


def requests(count: int = 24) -> list[Request]:
    """Prompts of many lengths, free and among choices."""
    rng = random.Random(0)
    free = [Request(cases.words(rng, 3, 60), seed, 12) for seed in range(count)]
    chosen = [Request(cases.words(rng, 3, 60), seed, 8, 1.0, cases.actions(rng, 6)) for seed in range(count)]
    return [request for pair in zip(free, chosen, strict=True) for request in pair]


@pytest.mark.parametrize("name", MODELS)
def test_a_gpu_samples_the_ids_of_the_cpu(name):
    model = MODELS[name]()
    known = TransformersEngine(model, cases.tokenizer()).generate(requests())
    found = TransformersEngine(copy.deepcopy(model).cuda(), cases.tokenizer()).generate(requests())
    assert cases.ids(found) == cases.ids(known)
    assert cases.worst_error(model, requests(), found) < ROUNDING[torch.float32]


@pytest.mark.parametrize("dtype", ROUNDING, ids=str)
def test_the_batch_changes_no_log_prob_but_for_rounding_and_two_runs_nothing(dtype):
    model = cases.qwen2().to("cuda", dtype)
    asked = requests()
    together, again = (TransformersEngine(model, cases.tokenizer()).generate(asked) for _ in range(2))
    assert together == again
    few = TransformersEngine(model, cases.tokenizer(), max_batch=3).generate(asked)
    same = [(one, other) for one, other in zip(together, few, strict=True) if one.ids == other.ids]
    assert len(same) >= (len(asked) if dtype == torch.float32 else len(asked) // 2)
    for one, other in same:
        assert one.logprobs == pytest.approx(other.logprobs, abs=ROUNDING[dtype])


@pytest.mark.parametrize("kind", KINDS)
def test_a_gpu_sees_what_the_cpu_sees(kind):
    asked = [
        Request(prompt(kind, *NAMES[:count]), seed, 8, images=tuple(NAMES[:count]))
        for seed, count in enumerate((1, 2, 3, 1))
    ]
    completions = []
    exact_convolutions()
    for device in ("cpu", "cuda"):
        model, tokenizer = checkpoint.load(folder(kind))
        model.to(device)
        eyes = sight.load(str(folder(kind)), None, model, PICTURES.__getitem__)
        completions.append(TransformersEngine(model, tokenizer, eyes=eyes).generate(asked))
    known, found = completions
    assert cases.ids(found) == cases.ids(known)
    for one, other in zip(known, found, strict=True):
        assert other.logprobs == pytest.approx(one.logprobs, abs=ROUNDING[torch.float32])
