"""What a plan says that a checkpoint takes: the file of a real training, and what each strategy holds in memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from costs_cases import ROOT, WHOLE, configuration, one_gpu, planned
from trainer_cases import MODELS, Stage, low_rank

from benchmarks.plan.models import sizes_of
from rlanything.cli import main
from rlanything.config import LearnConfig
from rlanything.planning.costs import devices
from rlanything.planning.costs.estimate import model_sizes
from rlanything.planning.costs.saving import Saving, saving
from rlanything.planning.costs.text import gb

TRAINED = 7_615_616_512 + 14_770_033_664
"""The weights of the paper's policy and reward model."""
RECORD = 600
"""Bytes that a file has at most for a tensor besides its numbers: name, sizes, and zeros up to the next address."""
DIVIDED = ("train.precision=bf16-true", "train.strategy=fsdp")


def of(*overrides: str, arm: str = "full") -> Saving:
    config = configuration(*overrides)
    return saving(config, arm, model_sizes(config, ROOT))


@pytest.mark.parametrize(("precision", "weight"), [("32-true", 4), ("bf16-mixed", 4), ("bf16-true", 2)])
def test_weights_and_two_moments_are_counted_in_the_format_of_the_weights(precision, weight):
    found = of(f"train.precision={precision}")
    assert found.file == 3 * weight * TRAINED
    assert found.kept == 2 * found.file
    assert found.most == 3 * found.file


def test_the_first_process_has_a_divided_state_in_the_hosts_memory_and_one_tensor_of_any_other():
    assert of(*DIVIDED).host == of(*DIVIDED, "train.offload=true").host == 6 * TRAINED
    assert of("train.strategy=ddp").host == of().host == 0


def test_a_model_that_does_not_train_is_in_no_checkpoint():
    assert {part.model for part in of(arm="policy").parts} == {"policy"}


def test_lora_has_its_own_weights_alone():
    assert one_gpu().saving.file == 2 * 3 * 4 * 18_464_768
    half = one_gpu("learn.policy.precision=bf16-true", WHOLE[0]).saving
    assert half.file == 3 * 2 * 1_543_714_304 + 3 * 4 * 18_464_768


@pytest.mark.parametrize("lora", [False, True])
def test_the_file_of_a_training_is_as_large(tmp_path: Path, lora: bool):
    plain, sizes = Stage(), {}
    for name in MODELS:
        (tmp_path / name).mkdir()
        sizes[name] = sizes_of(plain.made(name), tmp_path / name)
    learn = low_rank(LearnConfig()) if lora else LearnConfig()
    Stage(learn).fit(1, tmp_path)
    config = configuration("train.precision=32-true").model_copy(update={"learn": learn})
    wanted = saving(config, "full", sizes).file
    state = torch.load(tmp_path / "1.ckpt", weights_only=True)
    tensors = 4 * sum(len(each["state"]) for each in state["optimizer_states"])  # weight, moments, steps
    assert wanted < (tmp_path / "1.ckpt").stat().st_size < wanted + RECORD * (tensors + 20)


def test_the_plan_prints_it_beside_the_memory_of_the_host(capsys):
    words = ["plan", "scale=paper", *DIVIDED, "train.offload=true", "--arm", "full", "--arm", "policy"]
    words += ["--device", "H100", "--devices", "64"]
    assert main(["--root", str(ROOT), *words]) == 0
    said = capsys.readouterr().out.splitlines()
    (line,) = (line for line in said if line.startswith("checkpoint: "))
    assert said[said.index(line) - 1].startswith("train.offload: ")
    assert line == (
        f"checkpoint: {gb(6 * TRAINED)}. While the first process writes it: {gb(6 * TRAINED)} of the host's memory. "
        f"The live folder of a seed keeps the last 2: {gb(12 * TRAINED)} of disk, and {gb(18 * TRAINED)} while the "
        "next one is written"
    )
    assert main(["--root", str(ROOT), *words, "--json"]) == 0
    costs = json.loads(capsys.readouterr().out)["costs"]["full"]["saving"]
    assert [costs[name] for name in ("file", "host", "kept", "most")] == [n * TRAINED for n in (6, 6, 12, 18)]
    assert main(["--root", str(ROOT), *words, "--details"]) == 0
    assert "memory of the host while the first process writes it" in capsys.readouterr().out


def test_without_divided_models_the_plan_says_that_tensors_are_written_one_by_one(capsys):
    words = ["plan", "scale=single-gpu", "--arm", "full", "--device", "H100"]
    assert main(["--root", str(ROOT), *words]) == 0
    assert "writes it: one tensor at a time in memory. The live folder" in capsys.readouterr().out


def test_the_page_has_the_numbers_of_the_papers_models():
    page = " ".join((ROOT / "docs" / "plan.md").read_text().split())
    found = planned(*DIVIDED, count=64).saving
    assert f"A checkpoint has {gb(found.file)}" in page
    assert (
        f"keeps {found.kept / devices.GB:.1f} GB of them, and {found.most / devices.GB:.1f} GB while" in page
    )
