"""Seeds that one process trains one after the other, as under torchrun: none holds the memory of the one before."""

from __future__ import annotations

import gc
import shutil
import weakref

import pytest
import torch
from stage_cases import small

from rlanything.runs.layout import Layout
from rlanything.runs.seedrun import SeedRun
from rlanything.stages import train

pytestmark = pytest.mark.integration
ARM = "outcome"


def test_the_models_of_a_seed_are_gone_before_those_of_the_next_one_are_loaded(
    tiny_project, tmp_path, monkeypatch
):
    made: list[weakref.ref[torch.nn.Module]] = []
    held: list[int] = []
    begin = SeedRun.__init__

    def counted(run, *arguments):
        held.append(sum(module() is not None for module in made))
        begin(run, *arguments)
        made.append(weakref.ref(run.parts.module))
        made.append(weakref.ref(run.parts.policy.network))

    monkeypatch.setattr(SeedRun, "__init__", counted)
    root = shutil.copytree(tiny_project, tmp_path / "project", symlinks=True)
    gc.disable()  # it may collect at any time; a run must not depend on that
    try:
        train.train_arm(small("train.iterations=1", "train.seeds=2", "train.workers=1"), root, ARM)
    finally:
        gc.enable()
    assert held == [0, 0]
    assert [module() for module in made] == [None] * 4
    assert all(Layout(root).run(ARM, seed).is_dir() for seed in range(2))
