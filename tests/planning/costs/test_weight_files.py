"""What a plan says of the files from which vLLM's servers read weights: the layout that the engine writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from costs_cases import ROOT, configuration, one_gpu
from trainer_cases import MODELS, Stage, low_rank

from benchmarks.plan.models import sizes_of
from rlanything.cli import main
from rlanything.config import LearnConfig
from rlanything.engines.lora.files import WEIGHTS, save_lora
from rlanything.engines.lora.merging import frozen_state
from rlanything.engines.vllm.served.tensors import write_tensors
from rlanything.planning.costs.devices import GB
from rlanything.planning.costs.estimate import model_sizes
from rlanything.planning.costs.text import gb
from rlanything.planning.costs.weight_files import WeightFiles, weight_files

POLICY, REWARD, ADAPTER = 7_615_616_512, 14_770_033_664, 4_022_468_096 + 151_936 * 2560
"""The numbers that are written of the paper's models. The adapter's head is tied, so it is written twice."""
SERVERS = ("engine=vllm_servers",)
RECORD = 300
"""Bytes that a file has at most for a tensor besides its numbers."""


def of(*overrides: str, arm: str = "full", devices: int = 1) -> WeightFiles:
    config = configuration(*SERVERS, *overrides)
    found = weight_files(config, arm, model_sizes(config, ROOT), devices)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("overrides", "trained", "frozen"),
    [
        (("train.precision=32-true", "engine.dtype=auto"), 4, 4),
        (("train.precision=bf16-mixed", "engine.dtype=auto"), 4, 2),
        (("train.precision=bf16-mixed", "engine.dtype=auto", "train.strategy=fsdp"), 2, 2),
        (("train.precision=32-true", "engine.dtype=bfloat16"), 2, 2),
    ],
)
def test_every_model_that_is_asked_has_a_file_in_the_format_of_the_servers(overrides, trained, frozen):
    parts = {part.model: part.bytes for part in of(*overrides).parts}
    assert parts == {"policy": trained * POLICY, "reward": trained * REWARD, "adapter": frozen * ADAPTER}


def test_each_process_has_its_own_files():
    alone = of("train.seeds=3", "train.workers=1")
    assert alone.most == alone.process
    assert of("train.seeds=3", "train.workers=2").most == 2 * alone.process
    assert of("train.seeds=3", "train.workers=2", devices=8).most == 8 * alone.process


def test_servers_that_are_given_read_files_too_and_another_engine_has_none():
    given = of("engine.folder=/shared", "engine.addresses=[ray://head:6379]")
    assert given == of()
    config = configuration()
    assert weight_files(config, "full", model_sizes(config, ROOT), 1) is None


def test_a_model_that_is_not_loaded_has_no_file():
    assert "adapter" not in {part.model for part in of(arm="policy_reward").parts}


@pytest.mark.parametrize("lora", [False, True])
def test_the_files_that_the_engine_writes_are_as_large(tmp_path: Path, lora: bool):
    learn = low_rank(LearnConfig()) if lora else LearnConfig()
    plain, low = Stage(), Stage(learn)
    asked = configuration(*SERVERS, "engine.dtype=bfloat16")
    config = asked.model_copy(update={"learn": learn})
    sizes = {
        name: sizes_of(plain.made(name), tmp_path / name) for name in MODELS if not (tmp_path / name).mkdir()
    }
    sizes["adapter"] = sizes["policy"]
    found = weight_files(config, "full", sizes, 1)
    assert found is not None
    for name in MODELS:
        own = [part.bytes for part in found.parts if part.model == name]
        assert len(own) == 1 + lora
        state = frozen_state(low.made(name))
        write_tensors(tmp_path / "file", state, torch.bfloat16)
        assert own[0] < (tmp_path / "file").stat().st_size < own[0] + RECORD * len(state)
        if lora:
            save_lora(low.made(name), tmp_path / "lora", "base")
            assert own[1] < (tmp_path / "lora" / WEIGHTS).stat().st_size < own[1] + 2 * RECORD * len(state)


def test_the_plan_prints_the_disk_and_has_it_as_json(capsys):
    words = ["plan", "scale=single-gpu", *SERVERS, "--arm", "full", "--device", "H100", "--devices", "2"]
    found = one_gpu(*SERVERS, count=2).weight_files
    assert found is not None
    assert main(["--root", str(ROOT), *words]) == 0
    assert (
        f"files of weights for vLLM's servers: {gb(found.process)} of disk for each process that trains, "
        f"{gb(2 * found.process)} for all 2"
    ) in capsys.readouterr().out
    assert main(["--root", str(ROOT), *words, "--details"]) == 0
    assert "files of weights for vLLM's servers, of each process" in capsys.readouterr().out
    assert main(["--root", str(ROOT), *words, "--json"]) == 0
    files = json.loads(capsys.readouterr().out)["costs"]["full"]["weight_files"]
    assert (files["process"], files["most"]) == (found.process, found.most)


def test_the_page_has_the_disk_of_two_models():
    page = " ".join((ROOT / "docs" / "vllm.md").read_text().split())
    assert f"take {2 * 2 * POLICY / GB:.1f} GB of the disk" in page
