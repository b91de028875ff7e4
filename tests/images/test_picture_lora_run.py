"""A whole training with LoRA of models that read pictures: one frozen base, its vision tower included, for all roles.

The environment is a text game that shows a picture with every observation.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

import golden_cases as golden
import pytest
import torch
from picture_run_cases import configured, patched, train_once
from seen_run_cases import both_models_learned, is_computed_again, recorded
from stage_cases import contents
from torch.nn import Module

from rlanything.core.types import ScoredTrajectory
from rlanything.engines import checkpoint
from rlanything.engines.sight import eyes
from rlanything.files.images import ImageStore
from rlanything.learn.losses import pack, target_logprobs
from rlanything.learn.packing import policy_rows
from rlanything.repro.stored import StoredRun
from rlanything.runs.parts import RunId, make_parts
from rlanything.stages import train

pytest.importorskip("peft", reason="needs peft: pip install '.[lora]'")
pytestmark = [pytest.mark.long, pytest.mark.integration]

LORA = (
    *(f"learn.{role}.lora={{rank: 4, alpha: 8.0}}" for role in ("policy", "reward")),
    *(f"learn.{role}.lr=0.01" for role in ("policy", "reward")),
    "learn.importance=recomputed",
    "learn.kl_reference=base",
    "rollout.decoding=free",
    "train.iterations=2",
)
ROUNDING = 2e-5
"""Between the log-probs of sampling and of training, in float32."""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project whose games show pictures, trained once with LoRA."""
    with pytest.MonkeyPatch.context() as patch:
        patched(patch)
        root = tmp_path_factory.mktemp("lora")
        train_once(root, configured(*LORA))
        yield root


@pytest.fixture
def run(project) -> Path:
    return project / "runs" / "full" / "seed-0"


def test_training_computes_the_log_probs_that_were_sampled_before_and_after_an_update(run):
    both_models_learned(run)
    is_computed_again(run, recorded(run))
    first, second = StoredRun(run).metrics[:2]
    for name in ("policy", "reward"):
        assert 0 < first[f"{name}/mismatch_max"] < ROUNDING
        assert 0 < second[f"{name}/mismatch_max"] < ROUNDING


def test_the_merged_checkpoints_have_the_bits_of_the_base_but_in_the_matrices_of_the_decoder(project, run):
    base = checkpoint.load(project / "checkpoints" / "vl")[0].state_dict()
    for name in ("policy", "reward"):
        found = checkpoint.load(run / "checkpoints" / name)[0].state_dict()
        assert found.keys() == base.keys()
        changed = {key for key in base if not torch.equal(found[key], base[key])}
        assert len(changed) == 2 * 7  # layers, matrices
        assert all(".language_model.layers." in key for key in changed)
        assert any(".visual." in key for key in base.keys() - changed)
        assert (run / "checkpoints" / name / "preprocessor_config.json").is_file()


def test_peft_puts_the_exported_weights_onto_the_base_and_they_give_the_same_log_probs(project, run):
    from peft import PeftModel

    place = project / "checkpoints" / "vl"
    merged, fresh = checkpoint.load(run / "checkpoints" / "policy")[0], checkpoint.load(place)[0]
    seen = eyes.load(str(place), None, fresh, ImageStore(run / "images").get)
    rows = [
        row for t in recorded(run) for row in policy_rows(ScoredTrajectory(t, (1.0,) * len(t.steps)), "token")
    ]
    assert any(row.images for row in rows)
    batch = pack(rows, eyes=seen)
    with torch.no_grad():
        before = target_logprobs(fresh, batch)
        PeftModel.from_pretrained(fresh, run / "lora" / "policy")  # it changes the model in place
        after, wanted = target_logprobs(fresh, batch), target_logprobs(merged, batch)
    assert float((after - wanted).abs().max()) < 1e-4
    assert float((after - before).abs().max()) > 0.01


def test_a_killed_training_goes_on_from_the_weights_of_lora_and_ends_with_the_same_bytes(
    project, tmp_path, monkeypatch
):
    patched(monkeypatch)
    root = tmp_path / "killed"
    shutil.copytree(project, root, symlinks=True, ignore=shutil.ignore_patterns("runs", ".rla", "provenance"))
    with golden.killed_in(1):
        train.train_arm(configured(*LORA), root, "full")
    (stored,) = root.glob(".rla/live/*/full/seed-0/iterations/*/*.ckpt")
    state = torch.load(stored, weights_only=True)["state_dict"]
    assert len(state) == 2 * 2 * 2 * 7  # models, factors, layers, matrices
    assert all(".language_model." in name for name in state)
    train.train_arm(configured(*LORA), root, "full")
    assert contents(root / "runs" / "full") == contents(project / "runs" / "full")


def test_all_roles_share_one_vision_tower(project):
    def storages(*models: Module | None) -> set[int]:
        return {p.data_ptr() for model in models if model is not None for p in model.parameters()}

    with ExitStack() as engines:
        made = make_parts(configured(*LORA), RunId(project, "full", 0, project / "live"), engines)
        assert made.reward is not None
        base = storages(made.policy.whole)
        references = made.module._references.values()
        assert storages(made.reward.whole, *references, made.loop.proposals.chat_model.engine._model) == base
        assert storages(made.policy.network) & storages(made.reward.network) == base
        for role in (made.policy, made.reward):
            trains = [n for n, weight in role.network.named_parameters() if weight.requires_grad]
            assert len(trains) == 2 * 2 * 7
            assert not any(".visual." in name for name in trains)
