"""Every engine gives the tokens of the native engine and the log-probs of the module, however it is asked."""

from __future__ import annotations

import copy
import random

import engine_cases as cases
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from rlanything.core.types import Request
from rlanything.engines import cache
from rlanything.engines.native import NativeEngine
from rlanything.engines.transformers import TransformersEngine

TOLERANCE = 1e-5


@pytest.fixture(scope="module", params=cases.ARCHITECTURES)
def model(request):
    return cases.ARCHITECTURES[request.param]()


@pytest.fixture(scope="module", params=["transformers", "vllm"])
def engines(request, model):
    with cases.opened(request.param, model, max_batch=16) as other:
        yield NativeEngine(model, cases.tokenizer(), max_batch=16), other


def agree(engines, model, requests):
    """Both engines sample the same and record what the module says; returns the native completions."""
    native, reference = (engine.generate(requests) for engine in engines)
    assert cases.ids(native) == cases.ids(reference)
    assert [c.allowed for c in native] == [c.allowed for c in reference]
    assert [c.finished for c in native] == [c.finished for c in reference]
    for engine, completions in zip(engines, (native, reference), strict=True):
        assert cases.worst_error(model, requests, completions) < cases.tolerance(engine)
    return native


def test_free_decoding(engines, model):
    rng = random.Random(1)
    ragged = [Request(cases.words(rng, 1, 40), seed, rng.randint(1, 14)) for seed in range(20)]
    same = [Request(ragged[0].prompt_ids, seed, 10) for seed in range(20, 28)]
    agree(engines, model, ragged + same)


def test_constrained_decoding(engines, model):
    rng = random.Random(2)
    requests = [
        Request(cases.words(rng, 1, 30), seed, 8, rng.choice((0.0, 0.5, 1.0, 2.0)), cases.actions(rng, 6))
        for seed in range(24)
    ]
    free = [Request(cases.words(rng, 1, 30), seed, 8) for seed in range(6)]
    for request, completion in zip(requests, agree(engines, model, requests + free), strict=False):
        assert completion.ids in request.choices


def test_greedy_decoding_takes_the_most_likely_token_whatever_the_seed(engines, model):
    rng = random.Random(3)
    prompts = [cases.words(rng, 1, 30) for _ in range(6)]
    free = [Request(prompt, seed, 6, 0.0) for prompt in prompts for seed in (1, 2)]
    for request, completion in zip(free, agree(engines, model, free), strict=True):
        for end, token in enumerate(completion.ids):
            with torch.no_grad():
                logits = model(torch.tensor([request.prompt_ids + completion.ids[:end]])).logits[0, -1]
            assert token == int(logits.argmax())
    choices = cases.actions(rng, 6)
    constrained = [Request(prompt, seed, 8, 0.0, choices) for prompt in prompts for seed in (1, 2)]
    for request, completion in zip(constrained, agree(engines, model, constrained), strict=True):
        assert completion.ids in choices
        for end, token in enumerate(completion.ids):
            with torch.no_grad():
                logits = model(torch.tensor([request.prompt_ids + completion.ids[:end]])).logits[0, -1]
            assert token == max(completion.allowed[end], key=lambda option: float(logits[option]))


def test_groups(engines, model):
    rng = random.Random(3)
    requests = []
    for group in range(3):
        trunk = cases.words(rng, 60, 90)
        for cut in (1, 7, 30, 59):
            prompt = trunk[:cut] + cases.words(rng, 0, 9)
            requests += [
                Request(prompt, 100 * cut + vote, 9, group=f"trajectory {group}") for vote in range(3)
            ]
        requests.append(Request(trunk, group, 9, group=f"trajectory {group}"))
    agree(engines, model, requests)


def test_sessions(engines, model):
    rng = random.Random(4)
    starts = [cases.words(rng, 5, 40) for _ in range(4)]
    texts = {f"{task}/{rollout}": starts[task] for task in range(4) for rollout in range(6)}
    for turn in range(5):
        choices = [cases.actions(rng, 5) if turn % 2 else () for _ in texts]
        requests = [
            Request(text, 100 * turn + index, 7, 1.0, choices[index], session=name)
            for index, (name, text) in enumerate(texts.items())
            if rng.random() < 0.9
        ]
        completions = agree(engines, model, requests)
        texts = {
            request.session: request.prompt_ids + completion.ids + cases.words(rng, 1, 12)
            for request, completion in zip(requests, completions, strict=True)
        }


def test_long_feeds_are_cut_into_passes(engines, model, monkeypatch):
    monkeypatch.setattr(cache, "FEED_SCORES", 4000)
    monkeypatch.setattr(cache, "READ_TOKENS", 64)
    test_groups(engines, model)
    test_sessions(engines, model)


def test_a_module_in_bfloat16_is_computed_in_float32():
    """So samples are of its weights, and log-probs are nearer to exact ones than its own."""
    model = cases.qwen2()
    for value in model.parameters():
        value.data = value.data.to(torch.bfloat16).to(torch.float32)
    engine = NativeEngine(copy.deepcopy(model).to(torch.bfloat16), cases.tokenizer())
    requests = [Request(cases.words(random.Random(seed), 5, 20), seed, 8) for seed in range(8)]
    assert cases.worst_error(model, requests, engine.generate(requests)) < TOLERANCE


def test_another_architecture_through_generate():
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=cases.VOCABULARY, n_positions=128, n_embd=32, n_layer=2, n_head=2)
    model = GPT2LMHeadModel(config).train()
    engine = TransformersEngine(model, cases.tokenizer())
    rng = random.Random(5)
    requests = [
        Request(cases.words(rng, 1, 30), seed, 8, choices=cases.actions(rng, 5) if seed % 2 else ())
        for seed in range(8)
    ]
    completions = engine.generate(requests)
    assert model.training
    assert cases.worst_error(model.eval(), requests, completions) < TOLERANCE
    with pytest.raises(ValueError, match=r"GPT2LMHeadModel.*engine=transformers"):
        NativeEngine(model, cases.tokenizer())


def test_penalties_of_a_checkpoint_do_not_bend_the_reference():
    model = cases.qwen2()
    requests = [Request(cases.words(random.Random(seed), 5, 20), seed, 12) for seed in range(6)]
    model.generation_config.repetition_penalty = 5.0
    model.generation_config.eos_token_id = list(range(100))
    agree(
        (NativeEngine(model, cases.tokenizer()), TransformersEngine(model, cases.tokenizer())),
        model,
        requests,
    )
    assert model.generation_config.repetition_penalty == 5.0
