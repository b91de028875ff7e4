"""Trained tokens per CPU second, on random rows of a random model."""

from __future__ import annotations

import random

from benchmarks.machine import Measured
from benchmarks.sampling import small_model
from rlanything.config import Config
from rlanything.core.timing import Timer
from rlanything.core.types import (
    Judgement,
    ScoredReplies,
    ScoredTrajectory,
    Status,
    Step,
    Trajectory,
    Vote,
)
from rlanything.learn.datamodule import ExperienceDataModule
from rlanything.learn.module import JointModule, Minibatch
from rlanything.learn.packing import Row, micro_batches, minibatches, policy_rows, reward_rows
from rlanything.learn.trainer import make_trainer

Ids = tuple[int, ...]

UNITS, TURNS, VOTES = 16, 10, 3
"""Random rows: trajectories of each kind, turns of each, votes on each turn."""


def measure_training(config: Config, units: int = UNITS) -> Measured:
    """One update of a policy and a reward model that learn `units` random rows each, of the usual shapes."""
    groups = [micro_batches(rows, config.learn.micro_batch_tokens) for rows in random_rows(units)]
    batch = Minibatch(0, *(tuple(tuple(group) for group in part) for part in groups))
    module = JointModule(config.learn, small_model(), small_model())
    data = ExperienceDataModule(lambda: [batch], 1, dict, lambda _: None)
    timer, alone = Timer(), config.train.model_copy(update={"devices": 1, "strategy": "auto"})
    with timer.running():
        make_trainer(alone, 1).fit(module, data)
    lap = timer.lap()
    tokens = lap.counts["tokens"]
    return {"rows": "random", "tokens": tokens, "tokens_per_s": tokens / lap.phases["learn"].cpu}


def random_rows(units: int) -> tuple[list[Row], list[Row]]:
    """Policy rows and the reward model's tree rows of random trajectories, their weights summing to 1."""
    rng = random.Random(0)
    policy = [policy_rows(_lesson(rng), "trajectory") for _ in range(units)]
    reward = [reward_rows(_judged(rng), "step") for _ in range(units)]
    (acted,), (judged,) = (minibatches(rows, 1, 0, 0, "bench") for rows in (policy, reward))
    return acted, judged


def _lesson(rng: random.Random) -> ScoredTrajectory:
    steps, prompt = [], _ids(rng, 200)
    for _ in range(TURNS):
        response = _ids(rng, 8)
        steps.append(Step(prompt, response, (-1.0,) * 8, (), "", True, ""))
        prompt += response + _ids(rng, 20)
    trajectory = Trajectory("", 0, 0, 0, "", tuple(steps), 1, Status.OK)
    return ScoredTrajectory(trajectory, (1.0,) * TURNS)


def _judged(rng: random.Random) -> ScoredReplies:
    judgements, trunk = [], _ids(rng, 200)
    for _ in range(TURNS):
        votes = tuple(Vote(1, "", _ids(rng, 8), (-1.0,) * 8) for _ in range(VOTES))
        judgements.append(Judgement(trunk + _ids(rng, 20), votes))
        trunk += _ids(rng, 28)
    return ScoredReplies(tuple(judgements), ((1.0,) * VOTES,) * TURNS, (1.0,) * TURNS)


def _ids(rng: random.Random, count: int) -> Ids:
    return tuple(rng.randrange(10, 1000) for _ in range(count))
