"""Two processes learn from pictures what one process learns, also where one of them is shown none."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from rank_cases import two_ranks
from sight_cases import folder
from sight_ranks import KINDS, LORA, Sighted, main
from trainer_cases import OFFLOAD, furthest

from rlanything.learn.division import share
from rlanything.learn.packing import Row

FOLDERS = {name: folder(kind) for name, kind in KINDS.items()}


@pytest.fixture(scope="module")
def alone():
    """One process and its weights after each of two iterations."""
    return Sighted(FOLDERS).fit(2)


@pytest.fixture(scope="module")
def low():
    """The same with LoRA."""
    pytest.importorskip("peft", reason="needs peft: pip install '.[lora]'")
    return Sighted(FOLDERS, LORA).fit(2)


def test_a_micro_batch_is_shown_a_blank_picture_where_another_process_has_pictures_at_the_same_time():
    text, seen, blank = Row(), Row(images=["a"]), Row(images=["blank"])
    groups = [[text], [text], [text], [text, seen], [seen]]
    turns = [share(groups, SimpleNamespace(world_size=2, global_rank=rank), blank) for rank in (0, 1)]
    assert turns == [[[text], [text, blank], [seen]], [[text], [text, seen], [blank]]]
    assert share(groups, SimpleNamespace(world_size=1, global_rank=0), blank) == groups
    assert share(groups, SimpleNamespace(world_size=2, global_rank=1), None) == [[text], [text, seen], []]


def same(folder: Path, alone: Sighted) -> None:
    """Both processes have the statistics and the weights of the one that trains alone."""
    for rank in (0, 1):
        (found,) = json.loads((folder / f"totals-{rank}.json").read_text())
        assert found.keys() == alone.totals[0].keys()
        for name, values in alone.totals[0].items():
            assert found[name] == pytest.approx(values, abs=1e-5), name
        assert furthest(torch.load(folder / f"weights-{rank}.pt"), alone.weights[0]) < 1e-5


@pytest.mark.long
@pytest.mark.integration
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_processes_learn_from_pictures_what_one_learns(tmp_path, strategy, alone):
    two_ranks(tmp_path, main, tmp_path, strategy, list(FOLDERS.values()))
    same(tmp_path, alone)
    if strategy == "fsdp":
        going_on = Sighted(FOLDERS).fit(2, resume=tmp_path / "1.ckpt")
        assert furthest(going_on.weights[-1], alone.weights[1]) < 1e-5


@pytest.mark.long
@pytest.mark.integration
@pytest.mark.parametrize("strategy", ["ddp", OFFLOAD])
def test_two_processes_learn_with_lora_from_pictures_what_one_learns(tmp_path, strategy, low):
    """The vision tower is frozen and whole in each process, also where one of them is shown no picture."""
    two_ranks(tmp_path, partial(main, lora=True), tmp_path, strategy, list(FOLDERS.values()))
    same(tmp_path, low)
    own = {name for name in low.weights[0] if ".lora_" in name}
    assert set(torch.load(tmp_path / "1.ckpt", weights_only=True)["state_dict"]) == own
    if strategy == OFFLOAD:
        going_on = Sighted(FOLDERS, LORA).fit(2, resume=tmp_path / "1.ckpt")
        assert furthest(going_on.weights[-1], low.weights[1]) < 1e-5


def test_with_lora_the_vision_tower_keeps_its_bits_and_the_weights_of_lora_move(low):
    first, (_, last) = Sighted(FOLDERS, LORA).module.state_dict(), low.weights
    moved = {name for name in first if not torch.equal(first[name], last[name])}
    assert moved == {name for name in first if ".lora_" in name}
    assert min(float((first[name] - last[name]).abs().max()) for name in moved) > 1e-4
