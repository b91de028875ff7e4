"""The dry run's numbers: parameters against the real model, what it prints, time from the calibration."""

import json
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from rlanything.cli import main
from rlanything.config import Architecture, parse
from rlanything.planning import calibrate, compose, plan, summary
from rlanything.planning.costs import devices
from rlanything.planning.costs.assumptions import Assumptions
from rlanything.planning.costs.estimate import estimate, model_sizes
from rlanything.planning.costs.sizes import DECLARED

ROOT = Path(__file__).parents[2]
ARMS = ("outcome", "policy", "policy_reward", "full")
CONFIG = parse(compose.compose(["scale=smoke", "train.seeds=3", "train.workers=2"], ROOT))
SIZES = model_sizes(CONFIG, ROOT)


@pytest.mark.parametrize(
    "sizes",
    [Architecture(), Architecture(hidden=96, intermediate=200, layers=3, heads=6, kv_heads=3, vocab=500)],
)
def test_parameters_are_those_of_the_real_model(sizes):
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(
        vocab_size=sizes.vocab,
        hidden_size=sizes.hidden,
        intermediate_size=sizes.intermediate,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        num_key_value_heads=sizes.kv_heads,
        tie_word_embeddings=True,
    )
    assert sizes.parameters == Qwen2ForCausalLM(config).num_parameters()


def test_time_is_iterations_times_rounds_of_seeds(tmp_path):
    planned = plan.plan_arm(CONFIG, tmp_path, "full", lambda config, root, arm: 1.5)
    assert planned.seconds == 1.5 * CONFIG.train.iterations * 2  # three seeds, two at a time
    text = summary.render(CONFIG, SIZES, [planned])
    assert text.partition("\nfull ")[2].splitlines()[0].endswith(" 0:06")


def test_an_arm_that_is_named_twice_is_planned_once_and_long_hours_touch_no_other_column(capsys):
    once = ["--root", str(ROOT), "plan", "--device", "L4", "scale=paper", "--arm", "full"]
    assert main(once) == 0
    said = capsys.readouterr().out
    row = next(line for line in said.splitlines() if line.startswith("full "))
    assert re.search(r" GB +\d{3},\d{3}$", row)
    assert main([*once, "--arm", "full"]) == 0
    assert capsys.readouterr().out == said


def test_an_embedded_model_has_at_most_the_parameters_of_a_whole_vocabulary():
    planned = plan.plan_arm(CONFIG, ROOT, "full")
    said = summary.render(CONFIG, SIZES, [planned])
    assert f"policy     at most {SIZES['policy'].parameters:,} parameters, models/policy\n" in said


def test_a_folder_has_no_revision_and_a_name_on_the_hub_has_one(tmp_path, capsys):
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    declared = json.loads((ROOT / DECLARED).read_text())["Qwen/Qwen2.5-0.5B-Instruct"]
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "config.json").write_text(json.dumps(declared))
    words = [
        "--root",
        str(tmp_path),
        "plan",
        "scale=single-gpu",
        "model.policy.path=base",
        "--device",
        "H100",
    ]
    assert main([*words, "--arm", "outcome"]) == 0
    printed = rows(capsys.readouterr().out)
    policy, reward = printed["policy"], printed["reward"]
    assert policy[-2:] == ["base", "(config.json)"]
    assert "at its newest revision" in " ".join(reward)


def rows(printed: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in printed.splitlines() if line}


def test_it_prints_a_page_of_useful_lines_and_the_rest_on_request(capsys):
    words = [
        "--root",
        str(ROOT),
        "plan",
        "scale=paper",
        "--arm",
        "full",
        "--device",
        "H100",
        "--devices",
        "64",
    ]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert len([line for line in printed.splitlines() if line]) <= 17
    assert "64 x H100, 80.0 GB each" in printed
    assert "\nat most " in printed
    assert "Upper bounds: " in printed
    assert "seed: " not in printed
    assert main([*words, "--details", "--config", "--reply-share", "0.5"]) == 0
    more = capsys.readouterr().out
    assert more.startswith("seed: ")
    assert "memory of a device" in more
    assert "at most " not in more.partition("memory of a device")[2]
    assert "an iteration, expected" in more
    assert "Upper bounds" not in more
    assert "\nexpected " in more


@pytest.mark.parametrize("scale", ["smoke", "single-gpu", "paper"])
def test_an_arm_that_does_more_never_takes_less(scale):
    config = parse(compose.compose([f"scale={scale}"], ROOT))
    sizes = model_sizes(config, ROOT)
    found = [estimate(config, arm, sizes, devices.device("H100"), 1, Assumptions()) for arm in ARMS]
    for less, more in pairwise(found):
        assert less.all_hours <= more.all_hours
        assert less.hours.iteration < more.hours.iteration
        assert less.memory.peak <= more.memory.peak


def test_one_arm_is_measured_and_the_others_follow_from_the_model(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(calibrate, "why_not", lambda config, root: "")
    monkeypatch.setattr(
        calibrate, "seconds_per_iteration", lambda config, root, arm: asked.append(arm) or 3600.0
    )
    monkeypatch.setattr(devices, "this_cpu", lambda: devices.Device("cpu", 10**10, 1e11, 1e11, 1e10, "said"))
    assert main(["--root", str(ROOT), "plan", "scale=smoke", "--measure"]) == 0
    printed = capsys.readouterr().out
    assert asked == ["full"]
    hours = [rows(printed)[arm][-1] for arm in ARMS]
    clocks = [sum(int(part) * 60**i for i, part in enumerate(text.split(":")[::-1])) for text in hours]
    assert clocks == sorted(clocks)
    assert len({*hours}) == 4


@pytest.mark.parametrize(
    ("words", "reason"),
    [((), "`rlanything bootstrap` make them"), (("--device", "H100"), "this machine's CPU is measured")],
)
def test_what_cannot_be_measured_is_said(words, reason, tmp_path, capsys):
    shutil.copytree(ROOT / "experiments", tmp_path / "experiments")
    assert main(["--root", str(tmp_path), "plan", "scale=smoke", "--measure", *words]) == 2
    assert reason in capsys.readouterr().err


def test_the_data_of_the_environment_need_not_be_there(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    shutil.copytree(ROOT / "experiments", tmp_path / "experiments")
    data = compose.compose(["env=alfworld_data"], tmp_path)
    (tmp_path / "params.yaml").write_text(compose.text(data))
    for words in (["plan"], ["train", "--arm", "full", "--dry-run"]):
        assert main(["--root", str(tmp_path), *words, "--device", "H100"]) == 0
        assert "\nfull " in capsys.readouterr().out


def test_embedded_models_are_planned_without_transformers():
    program = f"""
import sys
from rlanything.cli import main
assert main(["--root", {str(ROOT)!r}, "plan", "--device", "H100"]) == 0
assert "transformers" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_arm_that_replaces_tasks_may_roll_out_so_many_batches_and_no_more_than_there_are_tasks(tmp_path):
    for batches, tasks in ((10, CONFIG.tasks.train), (2, 2 * CONFIG.rollout.tasks)):
        more = ["+arm@arms.dapo=dynamic_sampling", f"arms.dapo.max_batches={batches}"]
        config = parse(compose.compose(["scale=smoke", *more], ROOT))
        planned = plan.plan_arm(config, tmp_path, "dapo")
        assert planned.rollouts == config.train.iterations * tasks * config.rollout.rollouts


def test_paired_acceptance_plays_the_old_task_beside_each_proposal(tmp_path):
    """So its upper bounds are those of three tasks in place of two."""
    found = {}
    for acceptance in ("strict", "paired"):
        config = parse(compose.compose(["scale=smoke", f"adaptation.acceptance={acceptance}"], ROOT))
        most = estimate(config, "full", SIZES, devices.device("H100"), 1, Assumptions())
        found[acceptance] = plan.plan_arm(config, tmp_path, "full").proposals, most.work.episodes
    assert found["paired"][0] == 2 * found["strict"][0]
    assert found["paired"][1] == 1.5 * found["strict"][1]


@pytest.mark.parametrize("alone", ["engine=vllm", "train.staleness=1"])
def test_several_devices_are_neither_planned_nor_proposed_where_one_process_alone_can_train(alone, capsys):
    words = ["plan", "scale=single-gpu", "learn.policy.lora=null", "learn.reward.lora=null", alone]
    words += ["engine=vllm_servers", "executor=processes"] if "staleness" in alone else []
    words = ["--root", str(ROOT), *words, "--arm", "full", "--device", "RTX4090"]
    assert main([*words, "--devices", "8"]) == 2
    assert f"--devices 8: {alone} trains with one process alone" in capsys.readouterr().err
    assert main(words) in (0, 1)
    assert "fsdp" not in capsys.readouterr().out


def test_a_model_behind_an_endpoint_takes_no_time_here_with_cuda_graphs_either():
    served = [
        "~arms.policy_reward",
        "~arms.full",
        "engine@endpoints.reward=openai",
        "endpoints.reward.model=m",
        "endpoints.reward.base_url=https://x/v1",
    ]
    for eager in ("true", "false"):
        words = ["scale=single-gpu", "engine=vllm", f"engine.eager={eager}", *served]
        config = parse(compose.compose(words, ROOT))
        found = estimate(
            config, "policy", model_sizes(config, ROOT), devices.device("H100"), 1, Assumptions()
        )
        assert found.hours.phases["judge"] == 0.0
