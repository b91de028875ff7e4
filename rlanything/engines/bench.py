"""What the native engine's caches buy, measured: turns of episodes, and votes on the steps of a trajectory.

Every function builds its own random model, so the numbers need no checkpoint; the text is random ids, so no response
ends before `max_tokens`. Times are process CPU seconds: run with OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from transformers import GenerationConfig, PreTrainedModel, Qwen2Config, Qwen2ForCausalLM

from rlanything.core.types import Completion, Engine, Request

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Workload:
    """Sizes of a measurement; lengths are in tokens."""

    tasks: int = 8
    rollouts: int = 8
    turns: int = 10
    prompt: int = 200
    observation: int = 16
    response: int = 12
    trajectories: int = 8
    steps: int = 12
    votes: int = 3
    reasoning: int = 24


def small_model(vocabulary: int = 1024) -> PreTrainedModel:
    """A random Qwen2 of about 0.7 million parameters, the size that the embedded demos train."""
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=vocabulary,
        hidden_size=128,
        intermediate_size=352,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
    )
    return Qwen2ForCausalLM(config).eval()


def episodes(
    generate: Callable[[Sequence[Request]], Sequence[Ids]], work: Workload, choices: int = 0
) -> float:
    """CPU seconds of all turns of tasks x rollouts episodes that advance together.

    `choices` > 0 offers that many random actions of 3 to 6 tokens (with common beginnings) instead of free decoding.
    """
    rng = random.Random(0)
    prompts = [_ids(rng, work.prompt + rng.randrange(40)) for _ in range(work.tasks)]
    texts = {
        f"{task}/{rollout}": prompts[task] for task in range(work.tasks) for rollout in range(work.rollouts)
    }
    start = time.process_time()
    for turn in range(work.turns):
        actions = _actions(rng, choices)
        requests = [
            Request(text, 1000 * turn + index, work.response, session=name, choices=actions)
            for index, (name, text) in enumerate(texts.items())
        ]
        responses = generate(requests)
        for request, response in zip(requests, responses, strict=True):
            seen = _ids(rng, work.observation // 2 + rng.randrange(work.observation))
            texts[request.session] = request.prompt_ids + tuple(response) + seen
    return time.process_time() - start


def vote_requests(work: Workload) -> list[Request]:
    """The judge's requests: every step of every trajectory, `votes` times, in one group per trajectory."""
    rng = random.Random(1)
    requests = []
    for trajectory in range(work.trajectories):
        text = _ids(rng, work.prompt)
        for step in range(work.steps):
            text += _ids(rng, work.observation + work.response)
            prompt = text + _ids(rng, 4)
            seeds = (trajectory * 10_000 + step * 10 + vote for vote in range(work.votes))
            requests += [Request(prompt, seed, work.reasoning, group=f"{trajectory}") for seed in seeds]
    return requests


def timed(engine: Engine, requests: Sequence[Request]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    engine.generate(requests)
    return time.process_time() - start


def one_by_one(engine: Engine, requests: Sequence[Request], votes: int) -> float:
    """CPU seconds when every vote reads its own prompt: no groups, and equal prompts in separate calls."""
    plain = [replace(request, group="") for request in requests]
    return sum(timed(engine, plain[vote::votes]) for vote in range(votes))


def ids_of(completions: Sequence[Completion]) -> list[Ids]:
    """The sampled ids."""
    return [completion.ids for completion in completions]


def plain_generate(model: PreTrainedModel, requests: Sequence[Request], max_batch: int = 64) -> list[Ids]:
    """`model.generate` with its own sampler, left padding and no stop token: what one would write first."""
    responses: list[Ids] = []
    count = max(request.max_tokens for request in requests)
    config = GenerationConfig(
        do_sample=True, top_k=0, max_new_tokens=count, min_new_tokens=count, pad_token_id=0
    )
    for start in range(0, len(requests), max_batch):
        prompts = [request.prompt_ids for request in requests[start : start + max_batch]]
        width = max(map(len, prompts))
        ids = torch.tensor([(0,) * (width - len(prompt)) + prompt for prompt in prompts])
        mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        with torch.no_grad():
            out = model.generate(ids, attention_mask=mask, generation_config=config)  # type: ignore[operator]
        responses += [tuple(row) for row in out[:, width:].tolist()]
    return responses


def _ids(rng: random.Random, count: int) -> Ids:
    return tuple(rng.randrange(10, 1000) for _ in range(count))


def _actions(rng: random.Random, count: int) -> tuple[Ids, ...]:
    verbs = [_ids(rng, 1) for _ in range(4)]
    return tuple(rng.choice(verbs) + _ids(rng, rng.randrange(1, 5)) + (2,) for _ in range(count))
