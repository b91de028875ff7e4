"""A text game that shows a picture with every observation, and a project whose models see it."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from image_cases import png
from sight_cases import folder
from stage_cases import ROOT, small

from envs.alfworld.engines.fast import FastEnvironment
from rlanything.config import Config
from rlanything.core.images import Image
from rlanything.core.types import Observation, StepResult
from rlanything.loop.episodes import LocalHost
from rlanything.loop.iteration import Loop
from rlanything.loop.prompts import Prompts
from rlanything.loop.share import hosted
from rlanything.runs import build, seedrun
from rlanything.stages import tasks, train
from rlanything.stages.bootstrap.stage import make_models

POLICY = "$history$pictures$observation|$actions"
JUDGE = "$before$action$after$observation$response"
CHANGES = (
    "model=paper",
    "engine=transformers",
    "engine.max_batch=8",
    *(f"model.{role}.path=checkpoints/vl" for role in ("policy", "reward", "adapter")),
    "model.prompts=prompts",
    "model.action_format=verbatim",
    "model.verdict_format=word",
    "model.images.policy=2",
    "model.images.reward=2",
    "rollout.decoding=constrained",
    "rollout.max_tokens=24",
    "rollout.tasks=2",
    "rollout.rollouts=2",
    "rollout.max_steps=2",
    "judge.max_tokens=4",
    "judge.m=2",
    "judge.max_invalid=1",
    "adaptation.max_tokens=8",
    "evaluate.max_steps=2",
    "evaluate.reward_rollouts=1",
    "evaluate.curve_rollouts=1",
    "evaluate.curve_tasks=1",
    "tasks.panels.reward_panel.tasks=2",
    "signals.reward_balance=none",  # all episodes fail, and balance needs successes
    "train.iterations=1",
    "train.precision=32-true",
    "~arms.outcome",
    "~arms.policy",
    "~arms.policy_reward",
    "tasks.train=4",
)


def configured(*more: str) -> Config:
    return small(*CHANGES, *more)


def train_once(root: Path, config: Config) -> None:
    """Tasks, models and a run of arm `full`. The game must be patched."""
    (root / "experiments").symlink_to(ROOT / "experiments")
    shutil.copytree(folder("qwen2_5_vl"), root / "checkpoints" / "vl")
    shutil.copytree(ROOT / "experiments" / "prompts" / "embedded", root / "prompts")
    (root / "prompts" / "policy_history.txt").write_text(POLICY)
    (root / "prompts" / "judge_history.txt").write_text(JUDGE)
    tasks.make_tasks(config, root)
    make_models(config, root)
    train.train_arm(config, root, "full")


def patched(patch: pytest.MonkeyPatch) -> None:
    """Every observation of a game comes with a picture that its text decides."""
    reset, step = FastEnvironment.reset, FastEnvironment.step

    def shown(seen):
        return Observation(seen.text, seen.actions, (Image(png(60, 40, shade=len(seen.text))),))

    def answered(self, action):
        result = step(self, action)
        return StepResult(shown(result.observation), result.done, result.success)

    patch.setattr(FastEnvironment, "reset", lambda self, task, seed: shown(reset(self, task, seed)))
    patch.setattr(FastEnvironment, "step", answered)
    # A model of random weights writes no verdict. Its votes are read from the length of what it writes.
    patch.setattr(Prompts, "verdict", lambda self, reply: 1 if len(reply) % 2 else -1)


def in_a_thread(patch: pytest.MonkeyPatch) -> set[str]:
    """Batches are sampled beside learning, as with workers. The environments stay here: a worker's are not patched.

    Returns the names of the threads in which that happens from now on.
    """
    threads, roll_out = set[str](), Loop.roll_out

    def remembered(self, state):
        threads.add(threading.current_thread().name)
        return roll_out(self, state)

    patch.setattr(Loop, "roll_out", remembered)
    patch.setattr(seedrun, "opened", lambda config: hosted(LocalHost(build.family(config))))
    return threads
