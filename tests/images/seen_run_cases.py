"""A training of one iteration whose models are shown pictures: what its tests share, whatever the pictures are of."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from sight_cases import folder
from stage_cases import ROOT, SMALL, contents

from rlanything.config import Config, parse
from rlanything.core.types import ScoredTrajectory, Trajectory
from rlanything.engines import checkpoint
from rlanything.engines.sight import eyes
from rlanything.files.images import ImageStore, sizes
from rlanything.learn.losses import pack, target_logprobs
from rlanything.learn.packing import policy_rows
from rlanything.loop.prompts import Prompts
from rlanything.loop.record import EpisodeRecord
from rlanything.planning import check
from rlanything.repro.replay_report import replay_run
from rlanything.repro.stored import StoredRun
from rlanything.runs.folder import RunFolder
from rlanything.runs.layout import Layout
from rlanything.stages import evaluate, label, tasks, train
from rlanything.stages.bootstrap.stage import make_models

CHANGES = (
    *SMALL,
    "env.observe=both",
    "rollout.timeout_s=120",
    "model=paper",
    "engine=transformers",
    "engine.max_batch=8",
    *(f"model.{role}.path=checkpoints/vl" for role in ("policy", "reward", "adapter")),
    "model.prompts=prompts",
    "model.action_format=verbatim",
    "model.images.policy=2",
    "model.images.reward=2",
    "rollout.decoding=free",
    "rollout.temperature=1.0",
    "rollout.max_tokens=6",
    "rollout.tasks=2",
    "rollout.rollouts=2",
    "rollout.max_steps=3",
    "evaluate.max_steps=2",
    "judge.max_tokens=4",
    "judge.m=2",
    "judge.max_invalid=1",
    "adaptation.max_tokens=8",
    "evaluate.reward_rollouts=1",
    "evaluate.curve_rollouts=1",
    "tasks.train=3",
    *(f"tasks.panels.{panel}.tasks=1" for panel in ("in_domain", "out_of_domain", "reward_panel")),
    "evaluate.curve_tasks=1",
    "signals.reward_balance=none",
    "train.iterations=1",
    "train.precision=32-true",
    "~arms.outcome",
    "~arms.policy",
    "~arms.policy_reward",
)
"""With the prompts in `prompts` and the checkpoint in `checkpoints/vl`."""


@contextmanager
def trained(root: Path, composed: dict[str, Any], prompts: str, said: Sequence[str]):
    """The folder of a run of one iteration. prompts: a folder of experiments/prompts.

    said: what a reply of a model that writes no words is read as, by its length.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Prompts, "action", lambda self, reply, actions: (said[len(reply) % len(said)], True))
        patch.setattr(Prompts, "verdict", lambda self, reply: 1 if len(reply) % 2 else -1)
        (root / "experiments").symlink_to(ROOT / "experiments")
        shutil.copytree(folder("qwen2_5_vl"), root / "checkpoints" / "vl")
        shutil.copytree(ROOT / "experiments" / "prompts" / prompts, root / "prompts")
        config = parse(composed)
        check.check(config, root)
        tasks.make_tasks(config, root)
        make_models(config, root)
        train.train_arm(config, root, "full")
        yield root / "runs" / "full" / "seed-0"


def recorded(run: Path) -> list[Trajectory]:
    """The episodes of the first iteration."""
    return [
        EpisodeRecord.from_json(line).episode.trajectory for line in StoredRun(run).records(0, "rollouts")
    ]


def shows_what_was_recorded(run: Path, trajectories: Sequence[Trajectory], screen: tuple[int, int]) -> None:
    """The store has the pictures of the episodes and no others, and each prompt had the latest two."""
    store = ImageStore(run / "images")
    named = {name for trajectory in trajectories for name in trajectory.images}
    assert {path.stem for path in store.folder.rglob("*.png")} == named
    assert set(sizes(store.folder / "iter_0001.jsonl.gz")) == named
    assert len(named) > 1  # what was done is on the screen
    assert {store.size(name) for name in named} == {screen}
    for trajectory in trajectories:
        for number, step in enumerate(trajectory.steps):
            seen = [*trajectory.first_images, *(n for s in trajectory.steps[:number] for n in s.images)]
            assert step.prompt_images == tuple(seen[-2:])


def is_computed_again(run: Path, trajectories: Sequence[Trajectory]) -> None:
    """Training computes the log-probs that were recorded."""
    place = run.parents[2] / "checkpoints" / "vl"
    model, _ = checkpoint.load(place)
    seen = eyes.load(str(place), None, model, ImageStore(run / "images").get)
    rows = [
        row for t in trajectories for row in policy_rows(ScoredTrajectory(t, (1.0,) * len(t.steps)), "token")
    ]
    old = torch.tensor([value for row in rows for value in row.old])
    with torch.no_grad():
        found = target_logprobs(model, pack(rows, eyes=seen))
    assert len(old) > 20
    assert (found - old).abs().max() < 2e-5


def is_the_same_after_a_kill(run: Path, config: Config, place: Path) -> None:
    """A training that ends before it publishes its first iteration, and goes on, leaves the same bytes.

    place: an empty folder.
    """
    assert contents(gone_on(run, config, place).parent) == contents(run.parent)


def gone_on(run: Path, config: Config, place: Path) -> Path:
    """The folder of a run that ended before it published its first iteration, and went on. place: an empty folder."""
    project, publish, times = run.parents[2], RunFolder.publish, list[int]()
    root = place / "again"
    shutil.copytree(project, root, symlinks=True, ignore=shutil.ignore_patterns("runs", ".rla", "provenance"))

    def killed_once(self: RunFolder, iteration: int, write: Any) -> None:
        times.append(iteration)
        if len(times) == 1:
            raise KeyboardInterrupt
        publish(self, iteration, write)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "publish", killed_once)
        with pytest.raises(KeyboardInterrupt):
            train.train_arm(config, root, "full")
        train.train_arm(config, root, "full")
    assert times == [0, 0, 1]
    return root / "runs" / "full" / run.name


def is_measured_and_replayed(run: Path, config: Config, *, play: bool) -> None:
    """The arm is evaluated, and what its run decided follows from what it recorded.

    play: its episodes are also played again, and the environment gives what was recorded.
    """
    root = run.parents[2]
    if config.evaluate.own_panel:
        label.make_labels(config, root)
    evaluate.evaluate_arm(config, root, "full")
    (found,) = json.loads(Layout(root).evaluation("full").read_text())["seeds"].values()
    assert set(found) >= {"in_domain", "out_of_domain", "rm_outcome"}
    assert replay_run(run, [], play=play).problem == ""


def both_models_learned(run: Path) -> None:
    """The first iteration trained policy and reward model."""
    first = StoredRun(run).metrics[0]
    assert first["policy/rows"] > 0
    assert first["reward/rows"] > 0
    assert first["policy/grad_norm"] > 0
