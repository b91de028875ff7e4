"""Whole trainings on a GPU that sample with vLLM: in the process and in servers, with LoRA, and with pictures."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from picture_run_cases import configured, patched, train_once
from seen_run_cases import both_models_learned
from stage_cases import small
from test_gpu_vllm import installed  # noqa: F401  # skips where vLLM has no kernels for GPUs

from rlanything.engines import placement
from rlanything.engines.placement import Role
from rlanything.engines.vllm import probe
from rlanything.report.results.evaluations import read_evaluation
from rlanything.repro.stored import StoredRun
from rlanything.runs.layout import Layout
from rlanything.stages import evaluate, train

ARM = "full"
ON_GPU = ["train.accelerator=cuda", "engine.cache_gib=0.5", "learn.importance=recomputed"]
ENGINES = {"vllm": ["engine.eager=false"], "vllm_servers": ["engine.eager=true"]}
WAYS = {
    "float32": [],
    "LoRA in bfloat16": [
        "train.precision=bf16-mixed",
        *(f"learn.{role}.lora={{rank: 4}}" for role in ("policy", "reward")),
    ],
}
FACTOR = 4
"""A token of many may differ by more than those of the probe."""


def check_mismatch(run: Path, most: float) -> None:
    """In every iteration that teaches a model, the trainer's log-probs are near those of the sampler."""
    for model in ("policy", "reward"):
        learned = [row for row in StoredRun(run).metrics if row.get(f"{model}/rows")]
        assert learned
        for row in learned:
            print(model, row[f"{model}/mismatch_max"], row[f"{model}/mismatch_kl"])
            assert 0 < row[f"{model}/mismatch_max"] < most


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_training_has_the_log_probs_of_what_sampled_and_is_evaluated(tiny_project, tmp_path, engine, way):
    if "LoRA" in way:
        pytest.importorskip("peft", reason="needs peft: pip install '.[lora]'")
    root = shutil.copytree(tiny_project, tmp_path / "project", symlinks=True)
    config = small(f"engine={engine}", *ON_GPU, *ENGINES[engine], *WAYS[way])
    train.train_arm(config, root, ARM)
    tolerance = probe.TOLERANCE[placement.dtype(config.train.precision, Role.FROZEN)]
    check_mismatch(Layout(root).run(ARM, 0), FACTOR * tolerance)
    evaluate.evaluate_arm(config, root, ARM)
    assert {"in_domain", "out_of_domain"} <= set(read_evaluation(Layout(root).evaluation(ARM), ARM))


def test_a_training_whose_models_see_has_the_log_probs_of_what_sampled(tmp_path, monkeypatch):
    patched(monkeypatch)
    changes = ("train.accelerator=cuda", "learn.importance=recomputed", "rollout.decoding=free")
    train_once(tmp_path, configured("engine=vllm", "engine.cache_gib=0.2", *changes))
    run = Layout(tmp_path).run(ARM, 0)
    both_models_learned(run)
    check_mismatch(run, FACTOR * probe.TOLERANCE[torch.float32])
