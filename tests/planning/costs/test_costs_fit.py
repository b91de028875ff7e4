"""Which training fits a device, what lies where, and the nearest setting that fits where it does not."""

from __future__ import annotations

import pytest
from costs_cases import EXPECTED, ROOT, SMALL, configuration, one_gpu, planned

from rlanything.cli import main
from rlanything.config import parse
from rlanything.planning import compose
from rlanything.planning.costs import devices
from rlanything.planning.costs.assumptions import Assumptions
from rlanything.planning.costs.estimate import estimate, model_sizes
from rlanything.planning.costs.memory import memory
from rlanything.planning.costs.text import precisions, verdict


def test_small_checkpoints_fit_one_device_of_80_gb():
    found = planned(*SMALL)
    assert found.fits
    assert found.nearest is None


def test_seeds_that_train_at_once_share_a_device_and_take_its_memory_each():
    """Where they do not fit, one after the other is the first thing to try."""
    alone, four = (planned(*SMALL, f"train.workers={workers}", "train.seeds=4") for workers in (1, 8))
    assert four.memory.peak == 4 * alone.memory.peak
    assert (alone.fits, four.fits) == (True, False)
    setting, needed = four.nearest
    assert (setting.changes, needed) == (("train.workers=1",), alone.memory.peak)
    shared = [
        planned(*SMALL, f"train.workers={w}", "train.seeds=4", "train.devices=2", count=2) for w in (1, 8)
    ]
    assert shared[0].memory.peak == shared[1].memory.peak, (
        "processes that share a run train one seed at a time"
    )


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


def test_bfloat16_is_proposed_for_models_with_a_precision_of_their_own_too():
    whole = "learn.policy.lora=null", "learn.reward.lora=null", "model.reward.path=Qwen/Qwen2.5-7B-Instruct"
    known = one_gpu(*whole).nearest[0].changes
    found = one_gpu(*whole, "learn.reward.precision=32-true").nearest[0].changes
    assert "train.precision=bf16-true" in known
    assert "train.precision=bf16-true learn.reward.precision=null" in found


def test_a_plan_says_which_model_has_a_precision_of_its_own():
    config = parse(compose.compose(["scale=single-gpu", "learn.reward.precision=32-true"], ROOT))
    assert precisions(config) == "bf16-mixed (reward: 32-true)"


def test_one_number_that_is_too_large_is_the_one_that_is_changed():
    setting, _ = planned(*SMALL, "engine.max_batch=512").nearest
    assert [change.partition("=")[0] for change in setting.changes] == ["engine.max_batch"]
    setting, _ = planned(*SMALL, "learn.micro_batch_tokens=65536").nearest
    assert [change.partition("=")[0] for change in setting.changes] == ["learn.micro_batch_tokens"]


def test_weights_that_fit_no_device_are_named_and_not_the_longest_row(capsys):
    words = [
        "plan",
        "scale=single-gpu",
        "model=local",
        "path=meta-llama/Llama-3.3-70B-Instruct",
        "--arm",
        "full",
    ]
    assert main(["--root", str(ROOT), *words, "--device", "RTX4090"]) == 0
    printed = capsys.readouterr().out
    assert "147.7 GB of weights and of what the engine keeps are always on a device" in printed
    assert "longest row" not in printed
    assert "Lower judge.max_tokens" not in printed


def test_an_engine_of_others_need_not_have_a_batch():
    config = configuration(*SMALL, "learn.micro_batch_tokens=65536")
    config = config.model_copy(update={"engine": {"_target_": "theirs.Engine"}})
    found = estimate(config, "full", model_sizes(config, ROOT), devices.device("H100"), 1, EXPECTED)
    setting, _ = found.nearest
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


def test_gradients_that_are_exchanged_late_are_whole_beside_the_activations():
    found = {}
    for exchange in ("each", "last"):
        config = configuration("train.strategy=fsdp", f"train.exchange={exchange}")
        sizes = model_sizes(config, ROOT)
        parts = memory(config, "policy", sizes, planned(arm="policy").work, 8).passing
        (found[exchange],) = (part for part in parts if part.name.startswith("activations"))
    outside = 2 * 152_064 * 3_584 + 3_584  # whole in both
    assert found["last"].bytes - found["each"].bytes == 4 * (7_615_616_512 - outside)
    assert found["last"].name == "activations and whole gradients"


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


def test_the_papers_coding_experiment_is_no_longer_stopped_by_its_longest_row():
    found = planned("env=coding_data", count=32, given=Assumptions())
    assert found.work.undivided["reward"] == 400 + 2048 - 1
    assert found.work.longest_row["reward"] <= configuration("env=coding_data").learn.micro_batch_tokens
    setting, needed = found.nearest
    assert setting.changes == (
        "engine.max_batch=16",
        "learn.micro_batch_tokens=4096",
        "train.precision=bf16-true",
        "train.strategy=fsdp on 64 devices",
    )
    page = " ".join((ROOT / "docs" / "plan.md").read_text().split())
    assert f"64 devices then need {needed / devices.GB:.1f} GB each" in page


def test_a_proposal_of_bfloat16_weights_says_which_updates_they_would_lose():
    found = planned("env=coding_data", count=32, given=Assumptions())
    said = [line for line in verdict(found) if line.startswith("  but ")]
    assert len(said) == 2
    for name, line in zip(("policy", "reward"), said, strict=True):
        assert f"bfloat16 weights round away the updates of learn.{name}.lr = 1e-06" in line
    faster = "learn.policy.lr=1e-4", "learn.reward.lr=1e-4"
    assert not any(
        line.startswith("  but ")
        for line in verdict(planned("env=coding_data", *faster, count=32, given=Assumptions()))
    )
