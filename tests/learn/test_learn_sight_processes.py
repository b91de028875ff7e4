"""Two processes learn from pictures what one process learns, also where one of them is shown none."""

from __future__ import annotations

import json

import pytest
import torch
from rank_cases import two_ranks
from sight_cases import folder
from sight_ranks import KINDS, Sighted, main
from trainer_cases import furthest

FOLDERS = {name: folder(kind) for name, kind in KINDS.items()}


@pytest.fixture(scope="module")
def alone():
    """One process and its weights after each of two iterations."""
    return Sighted(FOLDERS).fit(2)


@pytest.mark.integration
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_processes_learn_from_pictures_what_one_learns(tmp_path, strategy, alone):
    two_ranks(tmp_path, main, tmp_path, strategy, list(FOLDERS.values()))
    for rank in (0, 1):
        (found,) = json.loads((tmp_path / f"totals-{rank}.json").read_text())
        assert found.keys() == alone.totals[0].keys()
        for name, values in alone.totals[0].items():
            assert found[name] == pytest.approx(values, abs=1e-5), name
        assert furthest(torch.load(tmp_path / f"weights-{rank}.pt"), alone.weights[0]) < 1e-5
    if strategy == "fsdp":
        going_on = Sighted(FOLDERS).fit(2, resume=tmp_path / "1.ckpt")
        assert furthest(going_on.weights[-1], alone.weights[1]) < 1e-5
