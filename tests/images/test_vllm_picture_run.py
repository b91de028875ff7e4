"""A training whose models see through vLLM. What it recorded is what training computes."""

from __future__ import annotations

import shutil

import engine_cases as cases
import golden_cases as golden
import pytest
import torch
from picture_run_cases import configured, in_a_thread, patched, train_once
from seen_run_cases import both_models_learned, recorded
from stage_cases import contents

from rlanything.core.types import ScoredTrajectory
from rlanything.engines import checkpoint
from rlanything.engines.sight import eyes
from rlanything.files.images import ImageStore
from rlanything.learn.losses import pack, target_logprobs
from rlanything.learn.packing import policy_rows
from rlanything.repro import replay_report
from rlanything.repro.stored import StoredRun
from rlanything.stages import train

pytestmark = pytest.mark.integration
ROUNDING = cases.TOLERANCE["vllm"]


LORA = [
    *(f"learn.{role}.lora={{rank: 4, alpha: 8.0}}" for role in ("policy", "reward")),
    *(f"learn.{role}.lr=0.01" for role in ("policy", "reward")),
    "train.iterations=2",
]
HOW = {
    "vllm": ["engine=vllm"],
    "vllm_servers": ["engine=vllm_servers"],
    "lora": ["engine=vllm", "engine.lora=apart", *LORA],
}
"""How a run samples and learns."""


@pytest.fixture(
    scope="module", params=["vllm", *(pytest.param(how, marks=pytest.mark.slow) for how in [*HOW][1:])]
)
def trained(request, tmp_path_factory):
    """A run whose policy, reward model and adapter sample with vLLM, the first two with pictures."""
    cases.needs_vllm()
    if request.param == "lora":
        pytest.importorskip("peft", reason="needs peft: pip install '.[lora]'")
    root = tmp_path_factory.mktemp("seen")
    memory = "engine.cache_gib=0.2"
    changes = (*HOW[request.param], memory, "learn.importance=recomputed", "rollout.decoding=free")
    with pytest.MonkeyPatch.context() as patch:
        patched(patch)
        train_once(root, configured(*changes))
    return root / "runs" / "full" / "seed-0"


def test_both_models_learned_and_the_sampler_had_their_log_probs(trained):
    both_models_learned(trained)
    learned = [row for row in StoredRun(trained).metrics if "policy/mismatch_max" in row]
    assert learned
    for row in learned:
        for model in ("policy", "reward"):
            print(model, row[f"{model}/mismatch_max"], row[f"{model}/mismatch_kl"])
            assert 0 < row[f"{model}/mismatch_max"] < ROUNDING


def test_the_recorded_log_probs_are_computed_again(trained):
    place = trained.parents[2] / "checkpoints" / "vl"
    model, _ = checkpoint.load(place)
    seen = eyes.load(str(place), None, model, ImageStore(trained / "images").get)
    trajectories = recorded(trained)
    assert any(step.prompt_images for trajectory in trajectories for step in trajectory.steps)
    rows = [
        row for t in trajectories for row in policy_rows(ScoredTrajectory(t, (1.0,) * len(t.steps)), "token")
    ]
    old = torch.tensor([value for row in rows for value in row.old])
    with torch.no_grad():
        found = target_logprobs(model, pack(rows, eyes=seen))
    print(len(old), float((found - old).abs().max()))
    assert len(old) > 100
    assert (found - old).abs().max() < ROUNDING


def test_it_is_replayed(trained, monkeypatch):
    assert replay_report.replay_run(trained, ()).problem == ""
    patched(monkeypatch)  # the game that showed the pictures
    assert replay_report.replay_run(trained, (), play=True).problem == ""


@pytest.mark.slow
def test_a_run_that_samples_ahead_and_is_killed_ends_with_the_same_bytes(tmp_path, monkeypatch):
    """What the batch of iteration 1 has seen is there when it is judged and learned from, also beside other work."""
    cases.needs_vllm()
    patched(monkeypatch)
    changes = ("engine=vllm_servers", "engine.cache_gib=0.2", "rollout.decoding=free", "train.iterations=2")
    config, root = configured(*changes, "train.staleness=1"), tmp_path / "whole"
    root.mkdir()
    train_once(root, config)
    run = root / "runs" / "full" / "seed-0"
    assert [row.get("staleness") for row in StoredRun(run).metrics[:2]] == [0, 1]
    other = tmp_path / "killed"
    shutil.copytree(root, other, symlinks=True, ignore=shutil.ignore_patterns("runs", ".rla", "provenance"))
    threads = in_a_thread(monkeypatch)
    with golden.killed_in(1):
        train.train_arm(config, other, "full")
    train.train_arm(config, other, "full")
    assert contents(other / "runs" / "full") == contents(root / "runs" / "full")
    assert "ahead" in threads
