"""What a plan says that loading takes of a node's memory, and that loading does take it."""

from __future__ import annotations

import json

import pytest
import torch
from costs_cases import ROOT, configuration, planned

from rlanything.cli import main
from rlanything.engines.placement import Role, placement
from rlanything.planning.costs.estimate import model_sizes
from rlanything.planning.costs.loading import Loading, loading

POLICY, REWARD, ADAPTER = 7_615_616_512, 14_770_033_664, 4_022_468_096
"""The weights of the paper's models."""
NODES = ("train.nodes=8", "train.devices=8")
DIVIDED = (*NODES, "train.strategy=fsdp")


def of(*overrides: str, arm: str = "full") -> Loading:
    config = configuration(*overrides)
    return loading(config, arm, model_sizes(config, ROOT), 64)


def test_models_that_wait_to_be_divided_are_whole_in_every_process_of_a_node():
    """Beside them is the copy that samples of the last one, until it is on its device."""
    found = of(*DIVIDED)
    assert found.process == 4 * (POLICY + REWARD) + 2 * REWARD
    assert found.node == 8 * found.process
    halved = of(*DIVIDED, "train.precision=bf16-true")
    assert halved.process == 2 * (POLICY + REWARD) + 2 * REWARD


def test_without_division_one_model_at_a_time_is_on_its_way_to_the_device():
    found = of(*NODES, "train.strategy=ddp")
    assert found.process == 4 * REWARD
    assert found.node == 8 * 4 * REWARD


def test_lora_divides_no_frozen_weights_so_none_of_them_wait():
    lora = [f"learn.{name}.lora={{rank: 16}}" for name in ("policy", "reward")]
    assert of(*DIVIDED, *lora).process == 2 * REWARD
    assert of(*DIVIDED, *lora[1:]).process == 4 * POLICY + 2 * REWARD


def test_a_reward_model_that_does_not_train_waits_for_nothing():
    assert of(*DIVIDED, arm="policy").process == 4 * POLICY + 2 * REWARD


def test_references_come_when_all_that_is_divided_is_there():
    small = "model.reward.path=Qwen/Qwen2.5-0.5B-Instruct"
    arms = "arms.full.adapt=false"
    without, more = of(*DIVIDED, small, arms), of(*DIVIDED, small, arms, "learn.kl_reference=base")
    assert more.process > without.process
    assert ("weights, reference, on its way", "policy") in {(p.name, p.model) for p in more.parts}


def test_how_many_processes_a_node_has_is_not_known_where_devices_are_counted_alone():
    assert of("train.strategy=fsdp").node is None


def test_what_is_divided_is_loaded_into_the_hosts_memory():
    config = configuration("train.strategy=fsdp", "train.accelerator=cpu")
    place = placement(config.train, Role.TRAINED, config.precision("policy"))
    assert (place.device, place.dtype) == (torch.device("cpu"), torch.float32)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (DIVIDED, "119.1 GB of the host's memory in each process, 952.7 GB on a node of 8"),
        (
            ("train.strategy=fsdp",),
            "119.1 GB of the host's memory in each process, times the processes of a node",
        ),
    ],
)
def test_the_plan_prints_it(capsys, keys, words):
    command = ["plan", "scale=paper", *keys, "--arm", "full", "--device", "H100"]
    command += [] if len(keys) > 1 else ["--devices", "64"]
    assert main(["--root", str(ROOT), *command]) == 0
    assert f"while models are loaded: {words}\n" in capsys.readouterr().out
    if len(keys) > 1:
        assert main(["--root", str(ROOT), *command, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)["costs"]["full"]["loading"]
        assert (found["process"], found["node"]) == (119_082_668_032, 952_661_344_256)
        assert main(["--root", str(ROOT), *command, "--details"]) == 0
        assert "memory of the host while models are loaded, in each process" in capsys.readouterr().out


def test_one_device_has_no_such_line(capsys):
    assert main(["--root", str(ROOT), "plan", "scale=single-gpu", "--arm", "full", "--device", "H100"]) == 0
    assert "while models are loaded" not in capsys.readouterr().out


def test_the_page_has_the_numbers_of_the_papers_models():
    page = " ".join((ROOT / "docs" / "plan.md").read_text().split())
    mixed, narrow = of(*DIVIDED), of(*DIVIDED, "train.precision=bf16-true")
    waiting = 4 * (POLICY + REWARD)
    assert f"{waiting / 1e9:.1f} GB in each process" in page
    assert f"{mixed.process / 1e9:.1f} GB a process and {mixed.node / 1e9:.1f} GB a node" in page
    assert f"{narrow.node / 1e9:.1f} GB a node" in page
    assert planned(*DIVIDED, count=64).loading == mixed
