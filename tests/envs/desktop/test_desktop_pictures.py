"""A whole training on a desktop whose models are shown its pictures: rollouts, records, what training computes.

The desktop is the bridge over a stand-in for OSWorld's package; the models are small and have random weights.
"""

from __future__ import annotations

import shutil

import pytest
import torch
from desktop_cases import BRIDGE, SCREEN, content, extended, write
from sight_cases import folder
from stage_cases import ROOT, SMALL

from rlanything.config import parse
from rlanything.core.types import ScoredTrajectory
from rlanything.engines import checkpoint
from rlanything.engines.sight import eyes
from rlanything.files.images import ImageStore, sizes
from rlanything.learn.losses import pack, target_logprobs
from rlanything.learn.packing import policy_rows
from rlanything.loop.prompts import Prompts
from rlanything.loop.record import EpisodeRecord
from rlanything.planning import check, compose
from rlanything.repro.stored import StoredRun
from rlanything.stages import tasks, train
from rlanything.stages.bootstrap.stage import make_models

pytestmark = pytest.mark.integration
SAID = ("type 0 one", "press ctrl+s", "click 2", "done")
"""What a reply of a model that writes no words is read as, by its length."""
PLAIN = {"func": "typed", "expected": "one"}
APPS = {
    "os": [extended(name) for name in ("e1", "e2", "e3")],
    "chrome": [content("c1", PLAIN)],
    "multi_apps": [content("m1", PLAIN), content("m2", PLAIN)],
}
JUDGE = "evaluate.judges={one: {path: checkpoints/vl, votes: 1, max_tokens: 4}}"
CHANGES = (
    *SMALL,
    "env=osworld",
    "env.observe=both",
    f"env.screen=[{SCREEN[0]},{SCREEN[1]}]",
    "env.worlds=4",
    "env.timeout=60",
    "rollout.timeout_s=120",
    "model=paper",
    "engine=transformers",
    "engine.max_batch=8",
    *(f"model.{role}.path=checkpoints/vl" for role in ("policy", "reward", "adapter")),
    "model.prompts=prompts",
    "model.action_format=verbatim",
    "model.images.policy=2",
    "model.images.reward=2",
    "evaluate.labels=judge",
    f"+{JUDGE}",
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
    "tasks.panels.reward_panel.tasks=2",
    "signals.reward_balance=none",
    "train.iterations=1",
    "train.precision=32-true",
    "~arms.outcome",
    "~arms.policy",
    "~arms.policy_reward",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run of one iteration."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Prompts, "action", lambda self, reply, actions: (SAID[len(reply) % len(SAID)], True))
        patch.setattr(Prompts, "verdict", lambda self, reply: 1 if len(reply) % 2 else -1)
        root = tmp_path_factory.mktemp("desktop")
        (root / "experiments").symlink_to(ROOT / "experiments")
        shutil.copytree(folder("qwen2_5_vl"), root / "checkpoints" / "vl")
        shutil.copytree(ROOT / "experiments" / "prompts" / "desktop", root / "prompts")
        composed = compose.compose([*CHANGES], ROOT)
        files = write(tmp_path_factory.mktemp("osworld"), APPS)
        composed["env"] |= {"data": str(files), "command": [*BRIDGE]}
        config = parse(composed)
        check.check(config, root)
        tasks.make_tasks(config, root)
        make_models(config, root)
        train.train_arm(config, root, "full")
        yield root / "runs" / "full" / "seed-0"


@pytest.fixture(scope="module")
def trajectories(run):
    return [
        EpisodeRecord.from_json(line).episode.trajectory for line in StoredRun(run).records(0, "rollouts")
    ]


def test_the_screen_is_recorded_step_by_step_and_shown(run, trajectories):
    store = ImageStore(run / "images")
    named = {name for trajectory in trajectories for name in trajectory.images}
    assert {path.stem for path in store.folder.rglob("*.png")} == named
    assert set(sizes(store.folder / "iter_0001.jsonl.gz")) == named
    assert len(named) > 1  # what was typed is on the screen
    assert {store.size(name) for name in named} == {SCREEN}
    for trajectory in trajectories:
        for number, step in enumerate(trajectory.steps):
            seen = [*trajectory.first_images, *(n for s in trajectory.steps[:number] for n in s.images)]
            assert step.prompt_images == tuple(seen[-2:])


def test_training_computes_the_log_probs_that_were_recorded(run, trajectories):
    place = run.parents[2] / "checkpoints" / "vl"
    model, _ = checkpoint.load(place)
    seen = eyes.load(str(place), None, model, ImageStore(run / "images").get)
    rows = [
        row for t in trajectories for row in policy_rows(ScoredTrajectory(t, (1.0,) * len(t.steps)), "token")
    ]
    recorded = torch.tensor([value for row in rows for value in row.old])
    with torch.no_grad():
        found = target_logprobs(model, pack(rows, eyes=seen))
    assert len(recorded) > 20
    assert (found - recorded).abs().max() < 2e-5


def test_both_models_learned(run):
    first = StoredRun(run).metrics[0]
    assert first["policy/rows"] > 0
    assert first["reward/rows"] > 0
    assert first["policy/grad_norm"] > 0
