"""How long learning and a whole iteration take: real parts, timed by wrapping their methods from outside.

What runs is what always runs: a run of one seed in a temporary folder. Without tasks and models, a module of random
weights learns random rows.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from unittest.mock import patch

from rlanything.config import Config
from rlanything.core.types import (
    Judgement,
    ScoredJudgements,
    ScoredTrajectory,
    Status,
    Step,
    Trajectory,
    Vote,
)

if TYPE_CHECKING:
    from rlanything.learn.module import Minibatch
    from rlanything.learn.packing import Row
    from rlanything.stages.seedrun import SeedRun

P = ParamSpec("P")
T = TypeVar("T")
Ids = tuple[int, ...]
Measured = dict[str, Any]

ITERATIONS = 2
"""The second one is reported: it also rolls out what was proposed in the first."""
PARTS = ("rollout", "judge", "adapt", "learn", "publish")
UNITS, TURNS, VOTES = 16, 10, 3
"""Random rows: trajectories of each kind, turns of each, votes on each turn."""


class Watch:
    """Adds up what wrapped calls take; parts are wrapped from outside, so that what runs is what always runs."""

    def __init__(self) -> None:
        self.wall: dict[str, float] = defaultdict(float)
        self.cpu: dict[str, float] = defaultdict(float)

    def around(self, name: str, call: Callable[P, T]) -> Callable[P, T]:
        """`call`, with its time added to `name`."""

        @wraps(call)
        def timed(*args: P.args, **kwargs: P.kwargs) -> T:
            wall, cpu = time.perf_counter(), time.process_time()
            try:
                return call(*args, **kwargs)
            finally:
                self.wall[name] += time.perf_counter() - wall
                self.cpu[name] += time.process_time() - cpu

        return timed


def iteration(config: Config, root: Path, arm: str) -> tuple[Measured, Measured]:
    """(training, iteration) of the last of `ITERATIONS` real ones, in a temporary folder."""
    from rlanything.stages.seedrun import SeedRun, Where

    train = config.train.model_copy(update={"iterations": ITERATIONS, "seeds": 1})
    evaluate = config.evaluate.model_copy(update={"curve_tasks": 1, "every": ITERATIONS})
    short = config.model_copy(update={"train": train, "evaluate": evaluate})
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in ("data", "models", "experiments"):
            (place / name).symlink_to(root / name)
        run = SeedRun(short, Where(place, arm, 0, place / "live"), lambda _: None)
        spans = Spans(run)
        with patch.object(os, "fsync", spans.watch.around("publish/sync", os.fsync)):
            run.run()
    return spans.training(), {"arm": arm, **spans.iteration()}


class Spans:
    """The parts of a run, timed; `moments` are the states of the watch at the end of each iteration."""

    def __init__(self, run: SeedRun) -> None:
        self.watch = watch = Watch()
        self.moments: list[tuple[float, Measured, Measured, int]] = []
        self.tokens = 0
        loop = run.loop
        run.roller.run = watch.around("rollout", run.roller.run)  # type: ignore[method-assign]
        feedback = loop.feedback
        feedback.judge = watch.around("judge", feedback.judge)  # type: ignore[method-assign]
        loop.adapter.critics = watch.around("adapt", loop.adapter.critics)  # type: ignore[method-assign]
        loop.adapter.propose = watch.around("adapt", loop.adapter.propose)  # type: ignore[method-assign]
        run.module.prepare = watch.around("learn", run.module.prepare)  # type: ignore[method-assign]
        run.module.training_step = self._counted(run.module.training_step)  # type: ignore[method-assign, assignment]
        run.folder.publish = self._marked(run.folder.publish)  # type: ignore[method-assign]
        for name, speaker in (("rollout", run.policy_speaker), ("judge", run.reward_speaker)):
            speaker.generate = watch.around(f"{name}/generate", speaker.generate)  # type: ignore[method-assign]

    def _counted(self, step: Callable[[Minibatch, int], None]) -> Callable[[Minibatch, int], None]:
        timed = self.watch.around("learn", step)

        @wraps(step)
        def counted(batch: Minibatch, index: int) -> None:
            self.tokens += sum(len(r.ids) for group in (*batch.policy, *batch.reward) for r in group)
            timed(batch, index)

        return counted

    def _marked(self, publish: Callable[P, T]) -> Callable[P, T]:
        timed = self.watch.around("publish", publish)

        @wraps(publish)
        def marked(*args: P.args, **kwargs: P.kwargs) -> T:
            result = timed(*args, **kwargs)
            cpu = {**self.watch.cpu, "all": time.process_time()}
            now = (time.perf_counter(), dict(self.watch.wall), cpu, self.tokens)
            self.moments.append(now)
            return result

        return marked

    def training(self) -> Measured:
        """Tokens that the measured iteration trained on (padding not counted), per CPU second."""
        (_, _, before, read), (_, _, after, trained) = self._last()
        tokens = trained - read
        return {
            "rows": "rollouts",
            "tokens": tokens,
            "tokens_per_s": tokens / (after["learn"] - before["learn"]),
        }

    def iteration(self) -> Measured:
        """Seconds on the clock and the share of every part; `generate`: share of a part that samples tokens.

        `publish`: its seconds, and those of them that waited for the disk; the others serialise and hash.
        """
        (start, before, used, _), (end, after, all_used, _) = self._last()
        spent = {name: after[name] - before.get(name, 0.0) for name in after}
        seconds = end - start
        shares = {name: spent.get(name, 0.0) / seconds for name in PARTS}
        sampled = {name: spent[f"{name}/generate"] / spent[name] for name in ("rollout", "judge")}
        shares["rest"] = 1.0 - sum(shares.values())
        cpu = all_used["all"] - used["all"]
        publish = {"seconds": spent["publish"], "sync_seconds": spent["publish/sync"]}
        return {
            "seconds": seconds,
            "cpu_seconds": cpu,
            "shares": shares,
            "generate": sampled,
            "publish": publish,
        }

    def _last(self) -> Sequence[tuple[float, Measured, Measured, int]]:
        """The ends of the iteration before the measured one and of itself; the run's last one only measures."""
        return self.moments[ITERATIONS - 2 : ITERATIONS]


def random_training(config: Config) -> Measured:
    """Tokens per CPU second of a module that learns random rows of the usual shapes."""
    from rlanything.engines.bench import small_model
    from rlanything.learn.datamodule import ExperienceDataModule
    from rlanything.learn.module import JointModule, Minibatch
    from rlanything.learn.packing import micro_batches
    from rlanything.stages.seedrun import quiet_trainer

    policy, reward = random_rows()
    groups = [micro_batches(rows, config.learn.micro_batch_tokens) for rows in (policy, reward)]
    batch = Minibatch(0, *(tuple(tuple(group) for group in part) for part in groups))
    watch, module = Watch(), JointModule(config.learn, small_model(), small_model())
    module.training_step = watch.around("learn", module.training_step)  # type: ignore[method-assign]
    data = ExperienceDataModule(lambda: [batch], 1, dict, lambda _: None)
    quiet_trainer(max_epochs=1, accelerator=config.train.accelerator, precision=config.train.precision).fit(
        module, data
    )
    tokens = sum(len(row.ids) for row in (*policy, *reward))
    return {"rows": "random", "tokens": tokens, "tokens_per_s": tokens / watch.cpu["learn"]}


def random_rows() -> tuple[list[Row], list[Row]]:
    """Policy rows and the reward model's tree rows of random trajectories, their weights summing to 1."""
    from rlanything.learn.packing import minibatches, policy_rows, reward_rows

    rng = random.Random(0)
    policy = [policy_rows(_lesson(rng), "trajectory") for _ in range(UNITS)]
    reward = [reward_rows(_judged(rng), "step") for _ in range(UNITS)]
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


def _judged(rng: random.Random) -> ScoredJudgements:
    judgements, trunk = [], _ids(rng, 200)
    for _ in range(TURNS):
        votes = tuple(Vote(1, "", _ids(rng, 8), (-1.0,) * 8) for _ in range(VOTES))
        judgements.append(Judgement(trunk + _ids(rng, 20), votes))
        trunk += _ids(rng, 28)
    return ScoredJudgements(tuple(judgements), ((1.0,) * VOTES,) * TURNS, (1.0,) * TURNS)


def _ids(rng: random.Random, count: int) -> Ids:
    return tuple(rng.randrange(10, 1000) for _ in range(count))
