"""Tiny random models, hand-made experience, and the slow references that learning is compared with."""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel, Qwen2Config, Qwen2ForCausalLM

from rlanything.config import LearnConfig, OptimizerConfig
from rlanything.core.types import (
    Judgement,
    ScoredReplies,
    ScoredTrajectory,
    Status,
    Step,
    Trajectory,
    Vote,
)
from rlanything.learn.losses import pack, target_logprobs
from rlanything.learn.packing import Row

Ids = tuple[int, ...]
VOCABULARY = 64
END = 1
"""The end of turn."""
FAST = LearnConfig(policy=OptimizerConfig(lr=1e-2), reward=OptimizerConfig(lr=1e-2), updates=2)
SLOW = LearnConfig(policy=OptimizerConfig(lr=1e-4), reward=OptimizerConfig(lr=1e-4), updates=2)
"""For comparisons up to rounding: AdamW's step is lr even where a gradient is rounding noise."""


class Stops:
    """All that an engine asks of a tokenizer: which id ends a response."""

    name_or_path = "tiny"
    chat_template = None
    eos_token_id = END


def qwen2(seed: int = 0) -> PreTrainedModel:
    """A random Qwen2 whose logits are far from uniform."""
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.2,
        tie_word_embeddings=True,
    )
    return Qwen2ForCausalLM(config).eval()


def words(rng: random.Random, least: int, most: int) -> Ids:
    """Random ids that are no end of turn, between `least` and `most` of them."""
    return tuple(rng.randrange(2, VOCABULARY) for _ in range(rng.randint(least, most)))


def step(prompt: Ids, response: Ids, allowed: tuple[Ids, ...] = (), logprobs: tuple[float, ...] = ()) -> Step:
    """A step whose recorded log-probs are -1 where none are given."""
    return Step(prompt, response, logprobs or (-1.0,) * len(response), allowed, "", True, "")


def lesson(steps: Sequence[Step], advantages: Sequence[float] = ()) -> ScoredTrajectory:
    """A trajectory with one advantage per step: +1, -1, +1 ... where none are given."""
    trajectory = Trajectory("task", 0, 0, 0, "", tuple(steps), 1, Status.OK)
    return ScoredTrajectory(
        trajectory, tuple(advantages) or tuple((-1.0) ** k for k in range(len(trajectory.steps)))
    )


def dialogue(seed: int, turns: int = 3) -> list[Step]:
    """Turns that extend each other."""
    rng = random.Random(seed)
    prompt, steps = words(rng, 3, 6), []
    for _ in range(turns):
        response = (*words(rng, 1, 4), END)
        steps.append(step(prompt, response))
        prompt += response + words(rng, 2, 4)
    return steps


def judged(seed: int, steps: int = 3, m: int = 3) -> list[Judgement]:
    """Questions that branch off one growing conversation, with m votes each."""
    rng = random.Random(seed)
    trunk, result = words(rng, 4, 6), []
    for _ in range(steps):
        trunk += words(rng, 1, 3)
        votes = tuple(vote((*words(rng, 0, 4), END)) for _ in range(m))
        result.append(Judgement(trunk + words(rng, 1, 3), votes))
        trunk += words(rng, 2, 4)
    return result


def vote(response: Ids, logprobs: tuple[float, ...] = ()) -> Vote:
    return Vote(1, "", response, logprobs or (-1.0,) * len(response))


def verdicts(
    judgements: Sequence[Judgement], advantages: Sequence[Sequence[float | None]] = ()
) -> ScoredReplies:
    """Judgements whose votes all train where nothing else is said."""
    given = tuple(map(tuple, advantages)) or tuple(
        tuple(float(j) - 1.0 for j in range(len(x.votes))) for x in judgements
    )
    return ScoredReplies(tuple(judgements), given, (1.0,) * len(judgements))


@torch.no_grad()
def separate_logprobs(model: PreTrainedModel, prompt: Ids, response: Ids) -> Tensor:
    """Log-probs of a response read alone after its prompt, over the whole vocabulary."""
    logits = model(torch.tensor([prompt + response])).logits[0, len(prompt) - 1 : -1].float()
    return logits.log_softmax(-1).gather(1, torch.tensor(response)[:, None])[:, 0]


@torch.no_grad()
def row_logprobs(model: PreTrainedModel, rows: Sequence[Row]) -> Tensor:
    """Log-probs of the rows' targets as learning computes them."""
    return target_logprobs(model, pack(rows, model.device))


def recorded(rows: Sequence[Row], model: PreTrainedModel) -> list[Row]:
    """The rows as if `model` had sampled them: its log-probs are the recorded ones."""
    for row in rows:
        row.old = row_logprobs(model, [row]).tolist()
        row.reference = list(row.old)
    return list(rows)


def largest(difference: Tensor) -> float:
    return float(difference.abs().max())
