"""Memory, work and time of a plan: against measurements, against each other, and what is said where it does not fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.plan.__main__ import TIMED, compare_times
from benchmarks.plan.__main__ import main as benchmark
from benchmarks.plan.models import ROWS, random_model, sizes_of
from benchmarks.plan.steps import PRECISIONS, measure_step, predicted_step
from benchmarks.training import random_rows
from rlanything.cli import main
from rlanything.config import Config, parse
from rlanything.core.errors import ConfigError
from rlanything.engines import checkpoint
from rlanything.planning import compose, plan
from rlanything.planning.costs import devices
from rlanything.planning.costs.assumptions import Assumptions
from rlanything.planning.costs.estimate import Estimate, estimate, model_sizes
from rlanything.planning.costs.memory import memory

ROOT = Path(__file__).parents[2]
ERROR = 0.09
"""How far a predicted peak may be from the measured one, as a share of it."""
FACTOR = 6
"""How many times a predicted time on this machine's CPU may be shorter or longer than the measured one."""
SMALL = [
    "model.policy.path=Qwen/Qwen2.5-0.5B-Instruct",
    "model.reward.path=Qwen/Qwen2.5-1.5B-Instruct",
    "model.adapter.path=Qwen/Qwen2.5-1.5B-Instruct",
    "learn.micro_batch_tokens=4096",
    "engine.max_batch=32",
]
FAST = "engine=vllm engine.eager=false engine.max_batch=256"
EXPECTED = Assumptions(episode_share=0.4, reply_share=0.1)


def configuration(*overrides: str) -> Config:
    return parse(compose.compose(["scale=paper", *overrides], ROOT))


def planned(*overrides: str, count: int = 1, given: Assumptions = EXPECTED, arm: str = "full") -> Estimate:
    config = configuration(*overrides)
    return estimate(config, arm, model_sizes(config, ROOT), devices.device("H100"), count, given)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kind", ["conversations", "tree"])
@pytest.mark.parametrize("recomputed", [False, True])
def test_the_memory_of_a_step_is_what_torch_allocates(tmp_path, precision, kind, recomputed):
    policy, reward = random_rows(ROWS)
    rows = policy if kind == "conversations" else reward[:1]
    size = sizes_of(random_model("qwen2"), tmp_path)
    peak = measure_step(random_model("qwen2"), [rows, rows], precision, recomputed=recomputed)
    assert predicted_step(size, rows, precision, recomputed=recomputed) == pytest.approx(peak, rel=ERROR)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TIMED)
def test_the_time_of_a_prompt_and_of_a_step_is_predicted_within_a_factor(kind):
    for found in compare_times(kind):
        assert 1 / FACTOR < found.ratio < FACTOR, found


def test_without_a_gpu_nothing_is_measured_on_one(monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SystemExit) as ended:
        benchmark(["--gpu"])
    assert ended.value.code == 2
    assert (
        "--gpu: PyTorch finds no GPU here that the plan knows; it knows H200, H100" in capsys.readouterr().err
    )


def test_the_page_states_the_factor_that_is_asserted():
    page = " ".join((ROOT / "docs" / "plan.md").read_text().split())
    assert f"within a factor of {FACTOR}, which the slow test" in page


def test_small_checkpoints_fit_one_device_of_80_gb():
    found = planned(*SMALL)
    assert found.fits
    assert found.nearest is None


def test_the_papers_models_do_not_fit_one_device_and_the_weights_alone_are_too_much():
    found = planned()
    assert not found.fits
    lasting = sum(part.bytes for part in found.memory.lasting)
    trained = 7_615_616_512 + 14_770_033_664
    assert lasting == 16 * trained + 2 * 4_022_468_096
    assert lasting > found.room


@pytest.mark.parametrize(
    "overrides",
    [
        [*SMALL, "engine.max_batch=512"],
        [*SMALL, "learn.micro_batch_tokens=65536"],
        ["model.reward.path=Qwen/Qwen2.5-7B-Instruct"],
    ],
)
def test_the_nearest_setting_really_fits(overrides):
    found = planned(*overrides)
    assert not found.fits
    assert found.nearest is not None
    setting, needed = found.nearest
    again = estimate(
        setting.config, "full", model_sizes(setting.config, ROOT), found.device, setting.devices, EXPECTED
    )
    assert again.fits
    assert again.memory.peak == needed
    assert setting.changes


def test_layers_are_computed_again_before_weights_lose_precision():
    whole = "learn.policy.lora=null", "learn.reward.lora=null"
    long = "env=coding_data", *whole, "rollout.max_tokens=5000"  # a row of the policy cannot be cut
    without = one_gpu(*long)
    setting, needed = without.nearest
    assert setting.changes == ("learn.gradient_checkpointing=true",)
    saving = one_gpu(*long, "learn.gradient_checkpointing=true")
    assert saving.memory.peak == needed
    times = saving.hours.phases["learn, reward"] / without.hours.phases["learn, reward"]
    assert 6 / 5 < times < 10 / 8  # passes to start, and operations; with log-probs that are recomputed


def test_one_number_that_is_too_large_is_the_one_that_is_changed():
    setting, _ = planned(*SMALL, "engine.max_batch=512").nearest
    assert [change.partition("=")[0] for change in setting.changes] == ["engine.max_batch"]
    setting, _ = planned(*SMALL, "learn.micro_batch_tokens=65536").nearest
    assert [change.partition("=")[0] for change in setting.changes] == ["learn.micro_batch_tokens"]


def test_a_row_that_cannot_be_divided_is_named(capsys):
    long = "judge.max_tokens=60000"
    found = planned(long, given=Assumptions(), count=64)
    assert found.nearest is None
    config = configuration(long)
    question = found.work.undivided["reward"]
    assert question > config.judge.max_tokens - 1 + config.rollout.max_tokens
    words = ["plan", "scale=paper", long, "--arm", "full", "--device", "H100", "--devices", "64"]
    assert main(["--root", str(ROOT), *words]) == 0
    assert (
        f"the longest row of reward has {question:,} tokens and cannot be divided" in capsys.readouterr().out
    )


@pytest.mark.parametrize("arm", ["outcome", "policy", "policy_reward", "full"])
@pytest.mark.parametrize("env", ["alfworld", "alfworld_data", "coding_data"])
def test_the_preset_for_one_gpu_fits_24_gb_and_without_lora_80_gb(arm, env):
    assert one_gpu(f"env={env}", arm=arm, device="RTX4090").fits
    assert one_gpu(f"env={env}", "learn.policy.lora=null", "learn.reward.lora=null", arm=arm).fits


def test_what_samples_ahead_keeps_its_cache_while_models_learn():
    one, ahead = (planned(*SMALL, "engine=native", f"train.staleness={age}").memory for age in (0, 1))
    caches = [part for part in one.passing if part.model == "policy" and part.name.startswith("keys, values")]
    assert [part for part in ahead.lasting if part not in one.lasting] == caches != []
    assert ahead.peak == one.peak + sum(part.bytes for part in caches)


def test_more_devices_copy_the_models_unless_they_are_divided():
    parts = {}
    for strategy, count in (("auto", 1), ("auto", 8), ("fsdp", 8)):
        config = configuration(f"train.strategy={strategy}")
        sizes = model_sizes(config, ROOT)
        work = planned(arm="policy").work
        parts[strategy, count] = sum(p.bytes for p in memory(config, "policy", sizes, work, count).lasting)
    policy, reward = 7_615_616_512, 2 * 14_770_033_664
    assert parts["auto", 1] == 16 * policy + reward
    assert parts["auto", 8] == 20 * policy + reward
    assert parts["fsdp", 8] == 16 * policy / 8 + 2 * policy + reward  # each device samples from a whole copy


def test_offloaded_parts_are_in_the_hosts_memory():
    """Two gathered layers stay on the device; AdamW steps where its moments are."""
    found = {}
    for offload in ("false", "true"):
        config = configuration("train.strategy=fsdp", f"train.offload={offload}")
        found[offload] = memory(config, "policy", model_sizes(config, ROOT), planned(arm="policy").work, 8)
    here, there = (sum(part.bytes for part in found[offload].lasting) for offload in found)
    policy = 7_615_616_512
    assert here - there == 16 * policy / 8
    assert sum(part.bytes for part in found["true"].host) == (16 + 4) * policy / 8
    assert not found["false"].host
    assert {p.name for p in found["false"].passing} - {p.name for p in found["true"].passing} == {
        "AdamW's step"
    }
    assert found["true"].peak < found["false"].peak


@pytest.mark.parametrize("arm", ["outcome", "policy", "policy_reward", "full"])
def test_the_calls_are_those_of_the_counts(arm):
    config = configuration()
    counts = plan.plan_arm(config, ROOT, arm)
    calls = {c.name: c.count for c in planned(given=Assumptions(), arm=arm).work.calls}
    iterations = config.train.iterations
    assert calls["act"] * iterations == (counts.rollouts + counts.proposals) * config.rollout.max_steps
    assert calls.get("judge", 0) * iterations == counts.replies
    assert ("adapt" in calls) == config.arm(arm).adapt


def test_the_papers_coding_experiment_is_no_longer_stopped_by_its_longest_row():
    found = planned("env=coding_data", count=32, given=Assumptions())
    assert found.work.undivided["reward"] == 400 + 2048 - 1
    assert found.work.longest_row["reward"] <= configuration("env=coding_data").learn.micro_batch_tokens
    setting, needed = found.nearest
    assert setting.changes == (
        "learn.micro_batch_tokens=4096",
        "train.precision=bf16-true",
        "train.strategy=fsdp on 128 devices",
    )
    page = " ".join((ROOT / "docs" / "plan.md").read_text().split())
    assert f"128 devices then need {needed / devices.GB:.1f} GB each" in page


def test_the_coding_experiment_can_be_planned():
    found = planned("env=coding_data", given=Assumptions(reply_share=0.25))
    calls = {c.name: c for c in found.work.calls}
    assert calls["act"].count == 2 * 64 * 32
    assert all(c.read >= 0 and c.longest > 0 for c in found.work.calls)


def test_twice_the_devices_halve_the_time_of_what_they_share():
    one, two = planned(*SMALL), planned(*SMALL, count=2)
    assert two.hours.phases["learn, policy"] == pytest.approx(one.hours.phases["learn, policy"] / 2)
    assert two.hours.hours < one.hours.hours


def test_shorter_episodes_and_replies_take_less_of_everything():
    long, short = planned(given=Assumptions(0.5, 0.5)), planned(given=Assumptions(0.25, 0.25))
    assert short.memory.peak < long.memory.peak
    assert short.hours.hours < long.hours.hours
    pairs = list(zip(short.work.calls, long.work.calls, strict=True))
    assert all(a.written < b.written for a, b in pairs)
    # The adapter reads facts and a critic's sentences, whose lengths do not follow from episodes.
    assert [a.name for a, b in pairs if a.read >= b.read] == ["adapt"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("episode_share", 0.0),
        ("reply_share", 1.5),
        ("turn_tokens", 0),
        ("opening_tokens", -1),
        ("rewritten_share", 2),
    ],
)
def test_an_assumption_that_cannot_be_is_refused(name, value):
    with pytest.raises(ConfigError, match=f"--{name.replace('_', '-')} {value}: must be"):
        Assumptions(**{name: value}).check()


def test_a_device_is_found_by_its_name_and_a_wrong_one_gets_the_nearest():
    assert devices.device("h100").memory == 80 * devices.GB
    with pytest.raises(ConfigError, match=r"--device 'H10': unknown; did you mean 'H100'\?"):
        devices.device("H10")


def test_this_machine_is_measured():
    here = devices.this_cpu()
    assert min(here.memory, here.half_flops, here.full_flops, here.bandwidth) > 0


def test_the_command_prints_what_fits_without_loading_a_model(monkeypatch, capsys):
    monkeypatch.setattr(checkpoint, "load", None)
    words = ["--episode-share", "0.4", "--reply-share", "0.1", "--arm", "full", "--device", "H100"]
    assert main(["--root", str(ROOT), "plan", "scale=paper", *SMALL, *words]) == 0
    assert "fits: " in capsys.readouterr().out
    assert main(["--root", str(ROOT), "plan", "scale=paper", *words]) == 0
    assert "does not fit: " in capsys.readouterr().out


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


def test_the_pages_have_the_numbers_of_their_commands():
    page = " ".join((ROOT / "docs" / "plan.md").read_text().split())
    bounds, expected = planned(count=64, given=Assumptions()), planned(count=64)
    for found in (bounds, expected):
        assert f"with one vote has {found.work.undivided['reward']:,} tokens" in page
    whole = planned("learn.gradient_checkpointing=false", count=64, given=Assumptions())
    kept, fewer = (activations_of(found) for found in (whole, bounds))
    assert f"take {kept}, with it {fewer}" in page
    for changes, needed in (found.nearest for found in (bounds, expected)):
        assert f"{needed / devices.GB:.1f} GB a device" in page
        assert all(change.split(" on ")[0] in page for change in changes.changes)
    hours = expected.hours.hours, expected.all_hours
    assert "take {:.0f} hours on 64 devices, and the whole arm {:.0f} hours".format(*hours) in page
    assert f"fits, with {planned(*SMALL).memory.peak / devices.GB:.1f} GB" in page


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
    for words in ("engine.max_batch=128", FAST, f"{FAST} learn.micro_batch_tokens=8192"):
        found = one_gpu(*words.split())
        assert f"| `{words}` | {found.memory.peak / devices.GB:.1f} | {found.all_hours:.1f} |" in page
    tiny = [f"model.{name}.path=Qwen/Qwen2.5-0.5B-Instruct" for name in ("policy", "reward")]
    assert f"takes at most {one_gpu(*tiny).memory.peak / devices.GB:.1f} GB" in page
    assert f"{lasting} before activations, at most {peak} with them" in paper
    assert f"the files of problems and a sandbox; at most {most} |" in paper


def activations_of(found: Estimate) -> str:
    """Of the reward model."""
    (part,) = (p for p in found.memory.passing if (p.name, p.model) == ("activations", "reward"))
    return f"{part.bytes / devices.GB:.1f} GB"


def gigabytes(parts):
    return f"{max(part.bytes for part in parts) / devices.GB:.1f} GB"


def one_gpu(
    *overrides: str, share: float = 1.0, arm: str = "full", device: str = "H100", count: int = 1
) -> Estimate:
    config = parse(compose.compose(["scale=single-gpu", *overrides], ROOT))
    given = Assumptions(reply_share=share)
    return estimate(config, arm, model_sizes(config, ROOT), devices.device(device), count, given)


def test_without_a_device_the_counts_are_printed_and_the_device_is_asked_for(monkeypatch, capsys):
    monkeypatch.setattr(devices, "of_this_machine", lambda: None)
    assert main(["--root", str(ROOT), "plan", "scale=paper", "--arm", "full"]) == 0
    said = capsys.readouterr().out
    assert "7,615,616,512 parameters" in said
    assert "name it with --device" in said


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
