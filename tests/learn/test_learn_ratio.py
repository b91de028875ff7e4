"""On-policy means on-policy: for what the engine sampled, the first ratio of every token is one."""

from __future__ import annotations

import random

import pytest
import torch
from learn_cases import END, Stops, largest, lesson, qwen2, row_logprobs, step, verdicts, vote, words

from rlanything.core.types import Completion, Judgement, Request
from rlanything.engines.native import NativeEngine
from rlanything.learn.packing import Row, policy_rows, reward_rows

TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def model():
    return qwen2(3)


@pytest.fixture
def engine(model):
    return NativeEngine(model, Stops())


def log_ratios(model, rows: list[Row]) -> torch.Tensor:
    current = torch.cat([row_logprobs(model, [row]) for row in rows])
    return current - torch.tensor([x for row in rows for x in row.old])


def episodes(engine: NativeEngine, choices: bool) -> list[Row]:
    """Rows of episodes sampled side by side in sessions, as rollouts are."""
    rng = random.Random(0)
    prompts = [words(rng, 3, 8) for _ in range(6)]
    steps: list[list] = [[] for _ in prompts]
    for turn in range(3):
        offered = [offer(rng) if choices else () for _ in prompts]
        asked = [
            Request(p, 100 * turn + k, 8, 0.8, choices=c, session=f"s{k}")
            for k, (p, c) in enumerate(zip(prompts, offered, strict=True))
        ]
        for k, reply in enumerate(engine.generate(asked)):
            steps[k].append(step(prompts[k], reply.ids, reply.allowed, reply.logprobs))
            prompts[k] += reply.ids + words(rng, 1, 3)
    return [row for made in steps for row in policy_rows(lesson(made), "step")]


def offer(rng: random.Random) -> tuple[tuple[int, ...], ...]:
    """Commands with common beginnings, so that some tokens are forced and some are choices."""
    verb = words(rng, 1, 2)
    return tuple({(*verb, *words(rng, 1, 2), END) for _ in range(4)} | {(*words(rng, 2, 2), END)})


@pytest.mark.parametrize("choices", [False, True], ids=["free", "constrained"])
def test_the_first_ratio_of_every_sampled_token_is_one(engine, model, choices):
    rows = episodes(engine, choices)
    assert len(rows) == 6
    assert any(bool(allowed) for row in rows for allowed in row.allowed) == choices
    assert largest(log_ratios(model, rows)) < TOLERANCE


def test_the_first_ratio_of_votes_that_the_engine_sampled_in_a_group_is_one(engine, model):
    rng = random.Random(1)
    trunk, prompts = words(rng, 4, 6), []
    for _ in range(4):
        trunk += words(rng, 2, 4)
        prompts.append(trunk + words(rng, 1, 3))
    asked = [Request(p, 10 * k + j, 6, group="one") for k, p in enumerate(prompts) for j in range(3)]
    replies: list[Completion] = engine.generate(asked)
    judgements = [
        Judgement(p, tuple(vote(r.ids, r.logprobs) for r in replies[3 * k : 3 * k + 3]))
        for k, p in enumerate(prompts)
    ]
    rows = reward_rows(verdicts(judgements), "step")
    assert len(rows[0].target) == sum(len(r.ids) for r in replies)
    assert largest(log_ratios(model, rows)) < TOLERANCE


def test_the_ratio_leaves_one_as_soon_as_the_weights_move(engine):
    rows = episodes(engine, choices=False)
    assert largest(log_ratios(qwen2(4), rows)) > 0.1


def test_rows_sampled_before_a_weight_change_show_it_until_the_engine_syncs(model):
    moving = qwen2(3)
    engine = NativeEngine(moving, Stops())
    with torch.no_grad():
        for parameter in moving.parameters():
            parameter.mul_(1.05)
    assert largest(log_ratios(moving, episodes(engine, choices=False))) > TOLERANCE
    engine.sync(1)
    assert largest(log_ratios(moving, episodes(engine, choices=False))) < TOLERANCE
