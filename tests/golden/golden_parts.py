"""The parts of a loop over the golden tasks and models, without the learning."""

from __future__ import annotations

from pathlib import Path

import golden_cases as golden

from rlanything.core.types import Task
from rlanything.engines.native import NativeEngine
from rlanything.engines.placement import Role
from rlanything.loop.adapt import Adapter
from rlanything.loop.iteration import Loop
from rlanything.loop.rollout import RolloutWorker
from rlanything.rewards.step_votes.judge import Judge
from rlanything.rewards.step_votes.signals import StepVoteModel
from rlanything.runs import build, families
from rlanything.runs.layout import read_tasks


class Parts:
    """The parts of a loop over the golden models; `limit` sets how many rows their engines take at once."""

    def __init__(self, root: Path) -> None:
        build.one_thread()
        config = golden.configuration()
        self.config = config.model_copy(
            update={"rollout": config.rollout.model_copy(update={"max_steps": 5})}
        )
        self.tasks: list[Task] = read_tasks(golden.START / "data" / "tasks" / "train.jsonl")
        self.models = [
            build.load(config, getattr(config.model, name), root, Role.FROZEN, name)
            for name in ("policy", "reward", "adapter")
        ]
        self.chat_models = [build.chat_model(config, *loaded) for loaded in self.models]
        family, prompts = families.family(config), build.prompts(config, root)
        self.rollout_worker = RolloutWorker(family, self.chat_models[0], prompts, self.config.rollout)
        self.judge = Judge(self.chat_models[1], prompts, config.judge)
        self.adapter = Adapter(
            family, self.chat_models[2], prompts, config.adaptation, config.rollout.timeout_s
        )

    def limit(self, rows: int) -> None:
        for chat_model, loaded in zip(self.chat_models, self.models, strict=True):
            chat_model.engine = NativeEngine(*loaded, max_batch=rows)

    def loop(self, seed: int) -> Loop:
        arm = self.config.arms["full"]
        reward_model = StepVoteModel(self.config, arm, seed, self.judge)
        return Loop(self.config, arm, seed, self.rollout_worker, reward_model, self.adapter)
