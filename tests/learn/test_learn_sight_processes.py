"""Two processes learn from pictures what one process learns, also where one of them is shown none."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import torch
from rank_cases import two_ranks
from sight_cases import folder
from sight_ranks import KINDS, Sighted, main
from trainer_cases import furthest

from rlanything.learn.division import share
from rlanything.learn.packing import Row

FOLDERS = {name: folder(kind) for name, kind in KINDS.items()}


@pytest.fixture(scope="module")
def alone():
    """One process and its weights after each of two iterations."""
    return Sighted(FOLDERS).fit(2)


def test_a_micro_batch_is_shown_a_blank_picture_where_another_process_has_pictures_at_the_same_time():
    text, seen, blank = Row(), Row(images=["a"]), Row(images=["blank"])
    groups = [[text], [text], [text], [text, seen], [seen]]
    turns = [share(groups, SimpleNamespace(world_size=2, global_rank=rank), blank) for rank in (0, 1)]
    assert turns == [[[text], [text, blank], [seen]], [[text], [text, seen], [blank]]]
    assert share(groups, SimpleNamespace(world_size=1, global_rank=0), blank) == groups
    assert share(groups, SimpleNamespace(world_size=2, global_rank=1), None) == [[text], [text, seen], []]


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
