"""Sampled tokens and votes per CPU second of the native engine, beside `model.generate` and votes one by one.

Measured are turns of episodes, and votes on the steps of trajectories. The model is random and the text is random
ids, so no checkpoint is needed. `python -m benchmarks.sampling` runs this benchmark alone; set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from transformers import (
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Qwen2Config,
    Qwen2ForCausalLM,
)
from transformers.models.qwen2 import Qwen2Tokenizer

from benchmarks.machine import Measured
from rlanything.core.protocols import Engine
from rlanything.core.types import Completion, Request
from rlanything.engines.native import NativeEngine

Ids = tuple[int, ...]
Respond = Callable[[Sequence[Request]], Sequence[Ids]]


@dataclass(frozen=True, slots=True)
class Workload:
    """Sizes of a measurement; lengths are in tokens."""

    tasks: int = 8
    rollouts: int = 8
    turns: int = 10
    prompt: int = 200
    observation: int = 16
    response: int = 12
    actions: int = 20
    trajectories: int = 8
    steps: int = 12
    votes: int = 3
    reasoning: int = 24


def measure_sampling(work: Workload | None = None) -> Measured:
    """The parts `sampling` and `votes` of bench.json."""
    rates = measure(work or Workload(), repeats=1)
    ours, plain = rates["episodes_native"], rates["episodes_generate"]
    votes, single, written = (rates[f"votes_{name}"] for name in ("group", "separate", "generate"))
    return {
        "sampling": {
            "ours_tokens_per_s": ours,
            "generate_tokens_per_s": plain,
            "times_generate": ours / plain,
            "ours_actions_per_s": rates["actions_native"],
        },
        "votes": {
            "ours_per_s": votes,
            "separate_per_s": single,
            "generate_per_s": written,
            "times_separate": votes / single,
            "times_generate": votes / written,
        },
    }


def measure(work: Workload, repeats: int = 2) -> dict[str, float]:
    """Rates per CPU second, the best of `repeats`.

    `episodes_*`: sampled tokens of multi-turn episodes, with sessions or reading the prompt again every turn.
    `actions_native`: actions chosen among `work.actions` by constrained decoding. `votes_*`: judge's votes,
    with trajectories read once, or every vote by itself (by the native engine or by `model.generate`).
    """
    model = small_model()
    engine = NativeEngine(model, endless_tokenizer())
    votes = vote_requests(work)
    actions = work.tasks * work.rollouts * work.turns

    def native(requests: Sequence[Request]) -> list[Ids]:
        return ids_of(engine.generate(requests))

    measured: dict[str, tuple[int, Callable[[], float]]] = {
        "episodes_native": (actions * work.response, lambda: episodes(native, work)),
        "episodes_generate": (
            actions * work.response,
            lambda: episodes(partial(plain_generate, model), work),
        ),
        "actions_native": (actions, lambda: episodes(native, work, constrained=True)),
        "votes_group": (len(votes), lambda: timed(partial(native, votes))),
        "votes_separate": (len(votes), lambda: one_by_one(engine, votes, work.votes)),
        "votes_generate": (len(votes), lambda: timed(partial(plain_generate, model, votes))),
    }
    return {name: count / min(run() for _ in range(repeats)) for name, (count, run) in measured.items()}


def small_model() -> PreTrainedModel:
    """A random Qwen2 of about 0.7 million parameters, the size that the embedded demos train."""
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=1024,
        hidden_size=128,
        intermediate_size=352,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
    )
    return Qwen2ForCausalLM(config).eval()


def endless_tokenizer() -> PreTrainedTokenizerBase:
    """A tokenizer whose end of sequence the small model cannot sample, so that every response has full length."""
    vocabulary = {chr(0x4E00 + index): index for index in range(1024)}
    return Qwen2Tokenizer(vocab={**vocabulary, "<|endoftext|>": 1024}, merges=[])


def episodes(respond: Respond, work: Workload, *, constrained: bool = False) -> float:
    """CPU seconds of all turns of tasks x rollouts episodes that advance together.

    `constrained` offers `work.actions` random actions of 3 to 6 tokens, with common beginnings.
    """
    rng = random.Random(0)
    prompts = [_ids(rng, work.prompt + rng.randrange(work.prompt // 5)) for _ in range(work.tasks)]
    names = [(task, f"{task}/{rollout}") for task in range(work.tasks) for rollout in range(work.rollouts)]
    texts = {name: prompts[task] for task, name in names}
    start = time.process_time()
    for turn in range(work.turns):
        choices = _actions(rng, work.actions) if constrained else ()
        requests = [
            Request(text, 1000 * turn + index, work.response, choices=choices, session=name)
            for index, (name, text) in enumerate(texts.items())
        ]
        for request, response in zip(requests, respond(requests), strict=True):
            seen = _ids(rng, work.observation // 2 + rng.randrange(work.observation))
            texts[request.session] = request.prompt_ids + response + seen
    return time.process_time() - start


def vote_requests(work: Workload) -> list[Request]:
    """The judge's requests: every step of every trajectory, `votes` times, in one group per trajectory."""
    rng = random.Random(1)
    requests = []
    for trajectory in range(work.trajectories):
        text = _ids(rng, work.prompt)
        for step in range(work.steps):
            text += _ids(rng, work.observation + work.response)
            prompt = text + _ids(rng, work.observation)
            seeds = (trajectory * 10_000 + step * 10 + vote for vote in range(work.votes))
            requests += [Request(prompt, seed, work.reasoning, group=f"{trajectory}") for seed in seeds]
    return requests


def one_by_one(engine: Engine, requests: Sequence[Request], votes: int) -> float:
    """CPU seconds when every vote reads its own prompt: no groups, and equal prompts in separate calls."""
    plain = [replace(request, group="") for request in requests]
    return sum(timed(partial(engine.generate, plain[vote::votes])) for vote in range(votes))


def timed(call: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def ids_of(completions: Sequence[Completion]) -> list[Ids]:
    """The sampled ids."""
    return [completion.ids for completion in completions]


def plain_generate(model: PreTrainedModel, requests: Sequence[Request], max_batch: int = 64) -> list[Ids]:
    """`model.generate` with its own sampler, left padding and no stop token: what one would write first."""
    responses: list[Ids] = []
    count = max(request.max_tokens for request in requests)
    config = GenerationConfig(do_sample=True, top_k=0, max_new_tokens=count, pad_token_id=0)
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


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps({name: round(rate, 1) for name, rate in measure(Workload()).items()}, indent=2))
