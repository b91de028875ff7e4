"""vLLM decodes no more rows at once than its cache holds, and a plan's hours, memory and words say so."""

from __future__ import annotations

import json
import re

import pytest
from costs_cases import ROOT, WHOLE, configuration, one_gpu

from rlanything.cli import main
from rlanything.config import Config, parse
from rlanything.engines.vllm import instance
from rlanything.planning import compose
from rlanything.planning.costs import devices
from rlanything.planning.costs.cache import BLOCK, rows_held, token_bytes
from rlanything.planning.costs.estimate import Estimate, model_sizes
from rlanything.planning.costs.hours import learning, parts_of_training, width_of

TOKEN = 28 * 2 * 256 * 2
"""Bytes of the keys and values of a token of Qwen2.5-1.5B in bfloat16: layers, two of each, 2 heads of 128."""
JUDGED = 2774
"""Tokens of the judge's longest row in the preset for one GPU, at the upper bounds: 87 blocks of 32."""
RAY = ("engine.addresses=[ray://head:6379]", "engine.folder=/shared/weights")
HTTP = ("engine.addresses=[http://a:1,http://b:1,http://c:1]", "engine.folder=/shared/weights")
FAST = ("engine.eager=false", "engine.max_batch=256")


def composed(*overrides: str) -> Config:
    return parse(compose.compose(["scale=single-gpu", *overrides], ROOT))


def held(*overrides: str) -> int | None:
    """Rows of the judge in a training."""
    config = composed(*overrides)
    sizes, width = model_sizes(config, ROOT), width_of(config, "reward", learning(config, "full"))
    part = parts_of_training(config, "full", sizes)["reward"]
    return rows_held(config, JUDGED, token_bytes(config, sizes["reward"], width), part)


def test_one_gib_holds_as_many_rows_as_worked_out_by_hand():
    assert BLOCK == instance.BLOCK
    assert 2**30 // TOKEN == 37_449
    assert 37_449 // (87 * 32) == 13
    assert held("engine=vllm") == 13, "one vLLM has all models: they share frozen weights"
    assert held("engine=vllm", "engine.cache_gib=12") == 12 * 37_449 // (87 * 32) == 161


@pytest.mark.parametrize(
    ("overrides", "rows"),
    [
        (("engine=vllm_servers",), 4),  # a third of 13.45
        (("engine=vllm_servers", "engine.replicas=2"), 2 * 2),  # each has a sixth
        (
            ("engine=vllm_servers", "engine.cache_gib=0.01", "engine.replicas=2"),
            2,
        ),  # each has at least one row
        (("engine=vllm", "engine.lora=merged"), 4),
        (("engine=vllm", *WHOLE), 2),  # the three models of an arm have weights of their own, in float32
        (("engine=vllm", *WHOLE, "engine.dtype=bfloat16"), 4),
        (("engine=vllm_servers", *RAY), 13),  # each server has the whole
        (("engine=vllm_servers", *RAY, "engine.replicas=2"), 26),
    ],
)
def test_engines_and_servers_divide_the_cache(overrides, rows):
    assert held(*overrides) == rows


@pytest.mark.parametrize(
    "overrides", [("engine=vllm_servers", *HTTP), ("engine=native",), ("engine=transformers",)]
)
def test_another_cache_bounds_nothing(overrides):
    assert held(*overrides) is None


def test_who_shares_the_cache():
    def parts(*overrides: str, arm: str = "full") -> dict[str, float]:
        config = composed("engine=vllm_servers", *overrides)
        return parts_of_training(config, arm, model_sizes(config, ROOT))

    assert parts() == pytest.approx({"policy": 1 / 3, "reward": 1 / 3, "adapter": 1 / 3})
    assert parts(arm="policy_reward") == {"policy": 0.5, "reward": 0.5}
    small = (
        "model.policy.path=Qwen/Qwen2.5-0.5B-Instruct"  # 12,288 bytes a token, by 24 layers and 2 heads of 64
    )
    assert parts(small, arm="policy_reward") == pytest.approx({"policy": 3 / 10, "reward": 7 / 10})
    large = (
        "model.policy.path=Qwen/Qwen3-4B"  # 147,456 bytes a token, 40,960 positions: 5.625 GiB beside 0.875
    )
    assert parts(large, arm="policy_reward") == pytest.approx({"policy": 45 / 52, "reward": 7 / 52})
    short = parts(large, "engine.context=8192", arm="policy_reward")
    assert short["policy"] == pytest.approx(147_456 / (147_456 + TOKEN))
    served = (
        "engine@endpoints.reward=openai", "endpoints.reward.model=judge", "endpoints.reward.context=32768",
        "endpoints.reward.base_url=http://127.0.0.1:8000/v1", "endpoints.reward.key_env=null",
        "~arm@arms.policy_reward", "arms.full.train_reward=false",
    )  # fmt: skip
    assert parts(*served) == {"policy": 0.5, "adapter": 0.5}, "an endpoint has no engine"


def test_the_hours_are_those_of_as_many_rows():
    small, few = one_gpu("engine=vllm", *FAST), one_gpu("engine=vllm", *FAST[:1], "engine.max_batch=13")
    assert small.hours.phases["judge"] == few.hours.phases["judge"]
    assert small.hours.phases["judge"] > 10 * one_gpu(*large()).hours.phases["judge"]
    given = one_gpu("engine=vllm_servers", *FAST, *HTTP)
    assert given.hours.phases["judge"] == one_gpu(*large()).hours.phases["judge"]
    assert not given.held


def large() -> tuple[str, ...]:
    return ("engine=vllm", *FAST, "engine.cache_gib=100")


def test_the_bootstrap_has_two_engines_and_an_evaluation_one_at_a_time():
    found = {(each.stage, each.calls, each.tokens): each for each in one_gpu("engine=vllm", *FAST).held}
    assert found["bootstrap", "reward panel", JUDGED].rows == 6
    assert found["evaluate", "reward panel", JUDGED].rows == 13
    assert found["curves, reward", "reward panel", JUDGED].rows == 13


@pytest.mark.parametrize("engine", [("vllm",), ("vllm_servers",), ("vllm_servers", "engine.replicas=2")])
def test_what_would_hold_all_rows_does(engine):
    words = [f"engine={engine[0]}", *engine[1:], *FAST]
    needed = max(each.gib for each in one_gpu(*words).held)
    assert not one_gpu(*words, f"engine.cache_gib={needed + 0.001}").held
    assert one_gpu(*words, f"engine.cache_gib={needed - 0.1}").held


def test_the_plan_says_that_the_cache_bounds_the_rows(capsys):
    chosen = ("plan", "scale=single-gpu", "engine=vllm", *FAST, "--arm", "full", "--device", "H100")
    words = ["--root", str(ROOT), *chosen]
    assert main([*words, "engine.cache_gib=2", "learn.micro_batch_tokens=8192", "--details"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    bounds = "engine.cache_gib=2 holds fewer rows than could be sampled together"
    assert f"{bounds}: 26 of 256 (judge, 2,774 tokens a row)" in said
    assert "19.1 would hold all rows of the iterations; a device has room for 18.4." in said
    assert "26 of 256 rows of 2,774 tokens; 19.1 would hold them" in said
    assert main([*words, "engine.cache_gib=40"]) == 0
    assert "cache_gib" not in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    (judge,) = [
        each
        for each in json.loads(capsys.readouterr().out)["costs"]["full"]["held"]
        if (each["stage"], each["calls"]) == ("iterations", "judge")
    ]
    assert (judge["rows"], judge["wanted"]) == (13, 256)


CONTEXT = 32_768 * TOKEN / 2**30
"""GiB of a prompt with its reply as long as Qwen2.5-1.5B has positions."""


@pytest.mark.parametrize(
    ("overrides", "least"),
    [
        (("engine=vllm",), 2 * CONTEXT),  # bootstrap opens two engines, before LoRA is there to share weights
        (("engine=vllm_servers",), 3 * CONTEXT),
        (("engine=vllm_servers", "engine.replicas=2"), 6 * CONTEXT),
        (("engine=vllm_servers", "engine.context=4096"), 3 * CONTEXT / 8),
        (("engine=vllm_servers", *RAY), CONTEXT),
        (("engine=vllm_servers", *HTTP), 0),
        ((), 0),
    ],
)
def test_the_least_cache_is_what_the_engines_ask_for_when_they_are_made(overrides, least):
    assert one_gpu(*overrides).least_gib == pytest.approx(least)


def test_the_plan_says_that_a_cache_is_too_small_to_start(capsys):
    command = ["--root", str(ROOT), "plan", "scale=single-gpu", "engine=vllm_servers", "--device", "H100"]
    assert main(command) == 0
    assert "engine.cache_gib=1 is too small: vLLM does not start with less than 2.7" in " ".join(
        capsys.readouterr().out.split()
    )


def test_the_commands_of_the_pages_have_a_cache_that_holds_all_rows():
    pages = {name: (ROOT / "docs" / f"{name}.md").read_text() for name in ("lora", "vllm", "containers")}
    written = [
        line.split("scale=single-gpu ")[1].split()
        for name in ("lora", "vllm")
        for line in pages[name].splitlines()
        if line.startswith("rlanything config write scale=single-gpu engine=vllm")
    ]
    (served,) = re.findall(r"SET:-(engine=vllm_servers .*)}", (ROOT / "compose.yaml").read_text())
    assert len(written) == 2
    for words in (*written, served.split()):
        found = one_gpu(*words)
        assert found.fits
        assert not found.held
        assert found.least_gib <= composed(*words).engine["cache_gib"]
    assert f"`SET={served}`" in pages["containers"]
    assert (
        f"the plan has {one_gpu(*served.split()).memory.peak / devices.GB:.1f} GB at most"
        in pages["containers"]
    )


def work_of_servers(found: Estimate) -> dict[str, float]:
    """What the servers of each model have beside weights and cache."""
    parts = [part for part in found.memory.lasting if part.name.startswith("keys, values")]
    assert len({part.model for part in parts}) == len(parts)
    return {part.model: part.bytes for part in parts}


def test_what_a_server_works_with_stays_beside_the_activations():
    inside, servers = one_gpu("engine=vllm"), one_gpu("engine=vllm_servers")
    assert not work_of_servers(inside)
    most = {
        model: max(
            part.bytes
            for part in inside.memory.passing
            if part.model == model and part.name.startswith("keys, values")
        )
        for model in ("policy", "reward", "adapter")
    }
    assert work_of_servers(servers) == most
    assert not [part for part in servers.memory.passing if part.name.startswith("keys, values")]
    caches = [p.bytes for f in (inside, servers) for p in f.memory.lasting if p.model == "all"]
    assert caches == [2**30, 2**30], "counted once"


@pytest.mark.parametrize("elsewhere", [RAY, HTTP])
def test_servers_on_other_devices_take_nothing_here(elsewhere):
    found = one_gpu("engine=vllm_servers", *elsewhere)
    assert not work_of_servers(found)
    assert not [part for part in found.memory.lasting if "servers" in part.name]


def test_a_divided_model_samples_from_its_frozen_copy():
    divided, whole = (configuration(f"train.strategy={name}") for name in ("fsdp", "auto"))
    assert [width_of(config, "policy", ("policy",)) for config in (divided, whole)] == [2, 4]
