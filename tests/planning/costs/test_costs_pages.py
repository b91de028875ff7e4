"""What `plan` prints of memory and time, what it refuses, and the numbers of the pages."""

from __future__ import annotations

import json
import math
import re
from types import SimpleNamespace

import pytest
import torch
from costs_cases import ROOT, SMALL, configuration, one_gpu, planned

from rlanything.cli import main
from rlanything.engines import checkpoint
from rlanything.planning.costs import devices
from rlanything.planning.costs.assumptions import Assumptions
from rlanything.planning.costs.estimate import Estimate, model_sizes
from rlanything.planning.costs.remedies import MOST_DEVICES

FAST = "engine=vllm engine.eager=false engine.max_batch=256"


def test_the_command_prints_what_fits_without_loading_a_model(monkeypatch, capsys):
    monkeypatch.setattr(checkpoint, "load", None)
    words = ["--episode-share", "0.4", "--reply-share", "0.1", "--arm", "full", "--device", "H100"]
    assert main(["--root", str(ROOT), "plan", "scale=paper", *SMALL, *words]) == 0
    assert "fits: " in capsys.readouterr().out
    assert main(["--root", str(ROOT), "plan", "scale=paper", *words]) == 0
    assert "does not fit: " in capsys.readouterr().out


def test_the_page_shows_a_row_that_its_command_prints(capsys):
    page = (ROOT / "docs" / "plan.md").read_text()
    command = next(
        line for line in page.splitlines() if line.startswith("rlanything plan scale=paper --arm full")
    )
    row = next(line for line in page.splitlines() if line.startswith("full  "))
    words = command.partition("#")[0].split()[1:]
    assert main(["--root", str(ROOT), *words]) == 0
    assert row in capsys.readouterr().out.splitlines()


def test_the_page_of_osworld_has_a_setting_that_fits_and_its_memory():
    page = (ROOT / "docs" / "osworld.md").read_text()
    command = next(
        line for line in page.splitlines() if line.startswith("rlanything plan scale=paper env=osworld")
    )
    overrides = [word for word in command.split() if "=" in word][1:]
    found = planned(*overrides, count=96)
    assert found.fits
    assert f"The plan has {found.memory.peak / devices.GB:.1f} GB for a device" in page
    alone = planned("env=osworld", given=Assumptions())
    assert f"at most {alone.memory.peak / devices.GB:.1f} GB for a device" in page


def test_json_says_the_same(capsys):
    words = [
        "plan",
        "scale=paper",
        *SMALL,
        "--arm",
        "full",
        "--device",
        "H100",
        "--json",
        "--reply-share",
        "0.1",
    ]
    assert main(["--root", str(ROOT), *words, "--episode-share", "0.4"]) == 0
    data = json.loads(capsys.readouterr().out)
    found = planned(*SMALL)
    assert data["costs"]["full"]["memory"]["peak"] == found.memory.peak
    assert data["costs"]["full"]["memory"]["fits"] is True
    assert data["models"]["policy"]["parameters"] == 494_032_768
    assert data["counts"]["full"]["rollouts"] == 25_600


def test_json_says_how_long_the_rows_are(capsys):
    words = ["plan", "scale=paper", "--arm", "full", "--device", "H100", "--json"]
    assert main(["--root", str(ROOT), *words]) == 0
    work = json.loads(capsys.readouterr().out)["costs"]["full"]["work"]
    rows = work["rows"]["reward"]
    assert work["longest_row"]["reward"] == max(row["tokens"] for row in rows)
    assert work["trained"]["reward"] == sum(row["count"] * row["tokens"] for row in rows)


@pytest.mark.long
def test_the_pages_have_the_numbers_of_their_commands():
    page = " ".join((ROOT / "docs" / "plan.md").read_text().split())
    bounds, expected = planned(count=64, given=Assumptions()), planned(count=64)
    for found in (bounds, expected):
        assert f"with one vote has {found.work.undivided['reward']:,} tokens" in page
    whole = planned("learn.gradient_checkpointing=false", count=64, given=Assumptions())
    kept, fewer = (activations_of(found) for found in (whole, bounds))
    assert f"take {kept}, with it {fewer}" in page
    assert bounds.nearest is None
    larger = planned(count=64, given=Assumptions(), device="H200")
    for changes, needed in (found.nearest for found in (larger, expected)):
        assert f"{needed / devices.GB:.1f} GB a device" in page
        assert all(change.split(" on ")[0] in page for change in changes.changes)
    assert_the_page_says_why_nothing_fits(page)
    setting, _ = expected.nearest
    fitting = planned(*(change.split(" on ")[0] for change in setting.changes), count=setting.devices)
    assert fitting.fits
    hours = fitting.hours.hours, fitting.all_hours
    assert "the iterations take {:.0f} hours, and the whole arm {:.0f} hours".format(*hours) in page
    assert f"fits, with {planned(*SMALL).memory.peak / devices.GB:.1f} GB" in page


def assert_the_page_says_why_nothing_fits(page: str) -> None:
    """At the upper bounds, with the smallest batches, on as many devices as are tried."""
    least = "engine.max_batch=1", "learn.micro_batch_tokens=512", "train.precision=bf16-true"
    found = planned(*least, "train.strategy=fsdp", count=MOST_DEVICES, given=Assumptions())
    frozen = sum(p.bytes for p in found.memory.lasting if "copy" in p.name or "frozen" in p.name)
    (part,) = (p for p in found.memory.passing if p.model == "reward" and p.name.startswith("activations"))
    policy, reward = (model_sizes(configuration(), ROOT)[name] for name in ("policy", "reward"))
    layer = (reward.parameters - reward.outside) / reward.layers
    gathered = 2 * (2 * reward.outside + 4 * layer)
    there, question, whole = (f"{count / devices.GB:.1f} GB" for count in (frozen, part.bytes, gathered))
    assert f"take {there}, and one such question {question}, of which {whole} are gathered weights" in page
    roots = [f"{2 * 2 * size.outside / devices.GB:.1f}" for size in (policy, reward)]
    assert "{} GB for Qwen2.5-7B in bfloat16, {} for Qwen2.5-14B".format(*roots) in page


@pytest.mark.long
def test_the_pages_have_the_numbers_of_the_preset_for_one_gpu():
    page = " ".join((ROOT / "docs" / "plan.md").read_text().split())
    paper = (ROOT / "docs" / "paper_map.md").read_text()
    games, coding = one_gpu(), one_gpu("env=coding_data")
    saving = one_gpu("env=coding_data", "learn.gradient_checkpointing=true")
    whole = one_gpu("learn.policy.lora=null", "learn.reward.lora=null")
    lasting = f"{sum(part.bytes for part in games.memory.lasting) / devices.GB:.1f} GB"
    peak, most, less = (f"{each.memory.peak / devices.GB:.1f} GB" for each in (games, coding, saving))
    assert f"bounds, also on a card of 24 GB: {peak}. {lasting} are weights" in page
    assert f"activations of the reward model ({gigabytes(games.memory.passing)})" in page
    assert f"With all weights training it takes {whole.memory.peak / devices.GB:.1f} GB and" in page
    assert f"at most {whole.all_hours:.1f} hours." in page
    assert f"the training takes {most}. With `learn.gradient_checkpointing=true` it takes {less}" in page
    assert f"at most {games.hours.hours:.1f} hours, and everything together {games.all_hours:.1f}" in page
    long = "learn.micro_batch_tokens=8192"
    cached = [f"{FAST} engine.cache_gib={gib}" for gib in (12, 16)]
    table = ("engine.max_batch=128", cached[0], *(f"{words} {long}" for words in cached))
    for words in table:
        found = one_gpu(*words.split())
        assert f"| `{words}` | {found.memory.peak / devices.GB:.1f} | {found.all_hours:.1f} |" in page
        assert found.fits
        assert found.least_gib <= 12
    tiny = [f"model.{name}.path=Qwen/Qwen2.5-0.5B-Instruct" for name in ("policy", "reward")]
    assert f"takes at most {one_gpu(*tiny).memory.peak / devices.GB:.1f} GB" in page
    assert f"{lasting} before activations, at most {peak} with them" in paper
    assert f"the files of problems and a sandbox; at most {most} |" in paper


SCALE = (ROOT / "docs" / "scale.md").read_text()
PLANS = [line for line in SCALE.splitlines() if line.startswith("rlanything plan ")]
ROWS = ["a laptop", "one GPU", "one node", "many nodes"]
"""What of the first table of the page has a plan of its own, in the order of the page's plans."""


def cell(on: str) -> str:
    """What the page says that a plan says."""
    (row,) = [line for line in SCALE.splitlines() if line.startswith(f"| [{on}](#")]
    return row.removesuffix(" |").rpartition(" | ")[2]


def printed(capsys, command: str) -> tuple[str, str, str]:
    """Of arm `full`: whether its numbers are an upper bound, its GB, its hours."""
    assert main(["--root", str(ROOT), *command.split()[1:]]) == 0
    said = capsys.readouterr().out
    (kind,) = re.findall(r"^(at most|expected)  ", said, re.MULTILINE)
    ((memory, hours),) = re.findall(r"^full  .* ([\d.]+) GB +([\d.]+)$", said, re.MULTILINE)
    return kind, memory, hours


@pytest.mark.parametrize(("on", "number"), [(on, number) for number, on in enumerate(ROWS)])
def test_the_page_from_a_laptop_to_a_cluster_has_the_numbers_of_its_plans(monkeypatch, capsys, on, number):
    assert len(PLANS) == len(ROWS)
    monkeypatch.setattr(devices, "this_cpu", lambda: devices.Device("cpu", 10**10, 1e11, 1e11, 1e10, "said"))
    kind, memory, hours = printed(capsys, PLANS[number])
    if on == "a laptop":  # its hours are of the machine that plans
        assert cell(on) == f"{memory} GB, 2 h {kind} (of this machine's CPU)"
        return
    keys = dict(word.split("=") for word in PLANS[number].split() if "=" in word)
    count = int(keys.get("train.devices", 1)) * int(keys.get("train.nodes", 1))
    named = (
        "H200" if on == "many nodes" else "H100"
    )  # float32 weights of the paper's models do not fit an H100
    device = named if count == 1 else f"{count} x {named}"
    each = "" if count == 1 else " a device"
    assert f"--device {named} " in f"{PLANS[number]} "
    assert cell(on).startswith(f"{memory} GB{each}, {hours} h {kind}, {device}")


def test_the_page_from_a_laptop_to_a_cluster_has_the_hours_of_vllm(capsys):
    (chosen,) = re.findall(r'make repro SCALE=single-gpu SET="([^"]*)"', SCALE)
    kind, memory, hours = printed(
        capsys, f"rlanything plan scale=single-gpu {chosen} --arm full --device H100"
    )
    without = [word for word in chosen.split() if not word.startswith("engine.cache_gib=")]
    least = math.ceil(10 * one_gpu(*without).least_gib) / 10
    assert f"The plan has {memory} GB {kind}. With the default of 1 GiB vLLM does not start" in SCALE
    assert f"which need {least:g} GiB" in SCALE
    preset = (ROOT / "experiments" / "scale" / "single-gpu.yaml").read_text().replace("\n# ", " ")
    assert f"On 80 GB, {chosen} take a sixth of the time" in preset
    before = re.search(r"([\d.]+) h at most", cell("one GPU"))
    assert before is not None
    assert cell("one GPU").endswith(f"with `vllm` [{hours} h](#one-gpu)")
    assert f"take {hours} hours {kind} in place of {before[1]}, by the plan" in SCALE
    assert round(float(before[1]) / float(hours)) == 6


def activations_of(found: Estimate) -> str:
    """Of the reward model."""
    (part,) = (p for p in found.memory.passing if (p.name, p.model) == ("activations", "reward"))
    return f"{part.bytes / devices.GB:.1f} GB"


def gigabytes(parts):
    return f"{max(part.bytes for part in parts) / devices.GB:.1f} GB"


def test_without_a_device_the_counts_are_printed_and_the_device_is_asked_for(monkeypatch, capsys):
    monkeypatch.setattr(devices, "of_this_machine", lambda: None)
    assert main(["--root", str(ROOT), "plan", "scale=paper", "--arm", "full"]) == 0
    said = capsys.readouterr().out
    assert "7,615,616,512 parameters" in said
    assert "name it with --device" in said


@pytest.mark.parametrize(
    ("name", "memory", "known"),
    [
        ("NVIDIA H100 80GB HBM3", 79.6 * 2**30, "H100"),
        ("NVIDIA A100-SXM4-80GB", 79.3 * 2**30, "A100-80GB"),
        ("NVIDIA GeForce RTX 4090", 23.6 * 2**30, "RTX4090"),
        ("NVIDIA L4", 22.2 * 2**30, "L4"),
        ("NVIDIA A100-SXM4-40GB", 39.4 * 2**30, None),
        ("NVIDIA L40S", 44.4 * 2**30, None),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 15.6 * 2**30, None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 9.8 * 2**30, None),
    ],
)
def test_a_card_is_known_by_its_name_and_its_memory(monkeypatch, name, memory, known):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: name)
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=int(memory))
    )
    found = devices.of_this_machine()
    assert (found and found.name) == known


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plan", "--device", "H10"], "--device 'H10': unknown"),
        (["plan", "--devices", "0"], "--devices 0: must be at least 1"),
        (["plan", "scale=paper", "--reply-share", "2"], "--reply-share 2.0: must be above 0 and at most 1"),
        (["plan", "scal=paper"], "override 'scal=paper'"),
        (["train", "--arm", "full", "--device", "H100"], "--device: belongs to --dry-run"),
    ],
)
def test_what_cannot_be_planned_is_refused_in_one_message(words, message, capsys):
    assert main(["--root", str(ROOT), *words]) == 2
    assert message in capsys.readouterr().err
