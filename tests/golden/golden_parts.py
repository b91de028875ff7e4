"""The parts of a loop over the golden tasks and models, without the learning."""

from __future__ import annotations

from pathlib import Path

import golden_cases as golden

from rlanything.core.types import Task
from rlanything.engines.native import NativeEngine
from rlanything.loop.adapt import Adapter
from rlanything.loop.iteration import Loop
from rlanything.loop.judge import Judge
from rlanything.loop.rollout import Roller
from rlanything.loop.stepvotes import StepVotes
from rlanything.stages import build
from rlanything.stages.layout import read_tasks


class Parts:
    """Roller, judge, adapter and loop over the golden models; `limit` sets how many rows their engines take at once."""

    def __init__(self, root: Path) -> None:
        build.one_thread()
        config = golden.configuration()
        self.config = config.model_copy(
            update={"rollout": config.rollout.model_copy(update={"max_steps": 5})}
        )
        self.tasks: list[Task] = read_tasks(golden.START / "data" / "tasks" / "train.jsonl")
        self.models = [
            build.load(x, root) for x in (config.model.policy, config.model.reward, config.model.adapter)
        ]
        self.speakers = [build.speaker(config, *loaded) for loaded in self.models]
        family, prompts = build.family(config), build.prompts(config, root)
        self.roller = Roller(family, self.speakers[0], prompts, self.config.rollout)
        self.judge = Judge(self.speakers[1], prompts, config.judge)
        self.adapter = Adapter(family, self.speakers[2], prompts, config.adaptation)

    def limit(self, rows: int) -> None:
        for speaker, loaded in zip(self.speakers, self.models, strict=True):
            speaker.engine = NativeEngine(*loaded, max_batch=rows)

    def loop(self, seed: int) -> Loop:
        arm = self.config.arms["full"]
        feedback = StepVotes(self.config, arm, seed, self.judge)
        return Loop(self.config, arm, seed, self.roller, feedback, self.adapter)
