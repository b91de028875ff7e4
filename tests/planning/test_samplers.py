"""What the engines `vllm` and `vllm_servers` cannot do is refused before any work, with what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlanything import cli
from rlanything.config import Config, parse
from rlanything.core.errors import ConfigError
from rlanything.engines.vllm import support
from rlanything.planning import check, compose, samplers
from rlanything.planning.costs.assumptions import Assumptions
from rlanything.planning.costs.memory import memory
from rlanything.planning.costs.sizes import embedded_size
from rlanything.planning.costs.work.workload import workload

ROOT = Path(__file__).parents[2]
ORACLE = ["judge.source=oracle", "arms.full.train_reward=false", "~arms.policy_reward"]
"""No arm has a reward model."""


def composed(*overrides: str) -> Config:
    return parse(compose.compose(["scale=smoke", "engine=vllm", *overrides], ROOT))


@pytest.fixture
def installed(monkeypatch):
    monkeypatch.setattr(support, "version", lambda: support.VERSION)


def test_the_defaults_can_run(installed):
    check.check(composed(), ROOT)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("model.embedded.heads=2", r"engine: attention heads of size 48: .*nearest: 32.*model\.embedded\.hidden = 96"),
        ("engine.cache_gib=0", "engine: cache_gib must be above 0, got 0"),
        ("engine.lora=merge", "engine: lora = 'merge': unknown; did you mean 'merged'"),
        ("engine.dtype=float15", "engine: dtype = 'float15': unknown; did you mean 'float16'|'bfloat16'"),
        ("engine.max_batched_tokens=5", "engine: max_batched_tokens must be at least max_batch = 256"),
        ("+engine.cache_gb=1", r"engine\.cache_gb: unknown; did you mean 'cache_gib'"),
        ("train.devices=2", r"train\.devices = 2, .*allowed: train\.devices=1, train\.nodes=1 and train"),
        ("train.strategy=ddp", r"train\.strategy = 'ddp': engine=vllm runs in the trainer's process"),
        ("train.accelerator=mps", r"train\.accelerator = 'mps': vLLM runs on cpu and cuda"),
    ],
)  # fmt: skip
def test_what_cannot_run_is_refused(installed, override, words):
    with pytest.raises(ConfigError, match=words):
        check.check(composed(override), ROOT)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("model.embedded.heads=2", "engine: attention heads of size 48"),
        ("engine.restarts=-1", "engine: restarts = -1: must be a whole number of at least 0"),
        ("engine.addresses=[a]", "engine: addresses: 'a' must have the form http://HOST:PORT"),
        ("engine.addresses=a", r"engine: addresses = 'a': must be a list, such as \[a\]"),
        ("engine.batch_invariant=1", "engine: batch_invariant = 1: must be true or false"),
        ("engine.batch_invariant=true", "vLLM has such kernels for GPUs alone, and the models are on cpu"),
        ("+engine.replica=2", r"engine\.replica: unknown; did you mean 'replicas'"),
        ("train.accelerator=mps", r"train\.accelerator = 'mps'"),
    ],
)
def test_what_servers_cannot_run_is_refused(installed, override, words):
    with pytest.raises(ConfigError, match=words):
        check.check(composed("engine=vllm_servers", override), ROOT)


def test_kernels_that_do_not_depend_on_the_batch_are_asked_for_on_a_gpu_and_of_servers_that_are_started_here(
    installed,
):
    asked = "scale=single-gpu", "engine=vllm_servers", "engine.batch_invariant=true"
    check.check(parse(compose.compose(asked, ROOT)), ROOT)
    given = parse(compose.compose([*asked, addresses(3)], ROOT))
    with pytest.raises(ConfigError, match="start them with VLLM_BATCH_INVARIANT=1"):
        check.check(given, ROOT)


def test_a_rank_that_vllm_does_not_take_apart_is_refused_by_its_key(installed):
    wide = ["scale=single-gpu", "learn.reward.lora={rank: 513}"]
    for engine in ("vllm", "vllm_servers"):
        for apart in ("engine.lora=apart", "engine.dtype=bfloat16"):
            config = parse(compose.compose([*wide, f"engine={engine}", apart], ROOT))
            with pytest.raises(
                ConfigError,
                match=r"^learn\.reward\.lora\.rank = 513: vLLM takes .* rank 512.*engine\.lora=merged",
            ):
                samplers.check(config)
        for merged in ("engine.lora=merged", "engine.dtype=float32"):
            samplers.check(parse(compose.compose([*wide, f"engine={engine}", merged], ROOT)))


@pytest.mark.parametrize(
    ("overrides", "apart"),
    [
        ([], True),  # scale=single-gpu has bf16-mixed, where frozen weights are bfloat16
        (["engine.dtype=float32"], False),
        (["engine.lora=merged"], False),
        (["train.precision=32-true"], False),
        (["train.precision=32-true", "engine.dtype=bfloat16"], True),
        (["train.precision=32-true", "engine.lora=apart"], True),
        (["learn.policy.precision=32-true"], False),
        (["learn.reward.precision=32-true"], True),  # the other model's
    ],
)
def test_loras_weights_are_sent_alone_where_rounded_sums_would_lose_them(overrides, apart):
    config = parse(compose.compose(["scale=single-gpu", "engine=vllm", *overrides], ROOT))
    assert samplers.lora_apart(config, "policy") is apart


def test_servers_leave_the_process_group_to_the_trainer(installed):
    check.check(composed("engine=vllm_servers", "train.devices=2", "train.strategy=ddp"), ROOT)


def test_each_process_needs_given_servers_of_its_own(installed):
    many = ["engine=vllm_servers", "train.devices=2", "engine.replicas=2"]
    check.check(composed(*many, addresses(12)), ROOT)
    with pytest.raises(
        ConfigError, match=r"engine: addresses: 11 of them; each of the 2 processes .* at least 12"
    ):
        check.check(composed(*many, addresses(11)), ROOT)


def addresses(count: int) -> str:
    """So many servers that a user has started."""
    return f"engine.addresses=[{','.join(f'http://gpu:{8001 + number}' for number in range(count))}]"


@pytest.mark.parametrize(
    ("overrides", "arm", "models"),
    [
        ([], "full", ["policy", "reward", "adapter"]),
        (["engine@endpoints.adapter=openai", "endpoints.adapter.model=any"], "outcome", ["policy", "reward"]),
        (ORACLE, "full", ["policy", "adapter"]),
    ],
)
def test_each_model_of_an_arm_that_the_engine_samples_needs_given_servers_of_its_own(
    installed, overrides, arm, models
):
    """All of them are open at once. Those that are asked last would find no server in the middle of an iteration."""
    served = ["engine=vllm_servers", *overrides]
    samplers.check(composed(*served, addresses(len(models))))
    said = rf"the arm {arm} asks {len(models)} \({', '.join(models)}\), so at least {len(models)}"
    with pytest.raises(ConfigError, match=f"addresses: {len(models) - 1} of them; .*{said}"):
        samplers.check(composed(*served, addresses(len(models) - 1)))


def test_given_servers_need_no_vllm_here(monkeypatch):
    monkeypatch.setattr(support, "version", lambda: None)
    with pytest.raises(ConfigError, match="engine: vLLM is not installed"):
        check.check(composed("engine=vllm_servers"), ROOT)
    check.check(composed("engine=vllm_servers", addresses(3)), ROOT)


def test_a_cluster_that_places_servers_needs_ray_and_one_folder_and_serves_all_processes(monkeypatch):
    monkeypatch.setattr(support, "version", lambda: None)
    placed = ["engine=vllm_servers", "train.devices=2", "engine.addresses=[ray://head:6379]"]
    with pytest.raises(ConfigError, match=r"engine: folder = None: Ray places servers on any node"):
        check.check(composed(*placed), ROOT)
    for found in (object(), None):
        monkeypatch.setattr(samplers, "find_spec", lambda name, found=found: found)
        if found:
            check.check(composed(*placed, "engine.folder=/shared/weights"), ROOT)
        else:
            with pytest.raises(ConfigError, match=r"ray://head:6379'\]: Ray is not installed: pip install"):
                check.check(composed(*placed, "engine.folder=/shared/weights"), ROOT)


def test_a_process_is_connected_to_one_cluster_of_ray(monkeypatch):
    monkeypatch.setattr(support, "version", lambda: None)
    monkeypatch.setattr(samplers, "find_spec", lambda name: object())
    placed = [
        "engine=vllm_servers",
        "engine.addresses=[ray://head:6379]",
        "engine.folder=/shared",
        "executor=ray",
    ]
    for address in ("null", "other:6379", "head:6380"):
        with pytest.raises(
            ConfigError, match=r"connected to one cluster; allowed: executor.address=head:6379, or"
        ):
            samplers.check(composed(*placed, f"executor.address={address}"))
    samplers.check(composed(*placed, "executor.address=head:6379"))
    samplers.check(composed(*placed[:3], "executor=processes"))


def test_samples_in_another_format_than_training_are_warned_of_unless_they_are_corrected():
    other = ["engine=vllm", "engine.dtype=bfloat16", "train.precision=32-true"]
    assert [text.partition(": ")[0] for text in samplers.unlike(composed(*other))] == [
        "engine.dtype = bfloat16"
    ] * 2
    _, said = samplers.unlike(composed(*other, "learn.policy.precision=bf16-mixed"))
    assert "samples the reward in another number format than it trains in (precision 32-true)" in said
    for more in (["learn.importance=recomputed"], ["engine.dtype=auto"], ["train.precision=bf16-true"]):
        assert samplers.unlike(composed(*other, *more)) == []
    assert samplers.unlike(composed()) == []


@pytest.mark.parametrize(
    "engine", ["native", "transformers", "vllm", "vllm_servers", "vllm engine.dtype=bfloat16"]
)
def test_updates_under_autocast_are_warned_of_with_every_engine_unless_they_are_corrected(engine):
    """The engine samples without autocast: docs/plan.md measures how far the ratios are from 1."""
    mixed = [f"engine={engine.split()[0]}", *engine.split()[1:], "train.precision=bf16-mixed"]
    recorded = samplers.unlike(composed(*mixed, "learn.importance=recorded"))
    assert [text.partition(": ")[0] for text in recorded] == ["train.precision = bf16-mixed"] * 2
    assert samplers.unlike(composed(*mixed, "learn.importance=recomputed")) == []
    one = composed(*mixed[:-1], "learn.importance=recorded", "learn.reward.precision=bf16-mixed")
    assert any(text.startswith("learn.reward.precision = bf16-mixed: ") for text in samplers.unlike(one))
    (policy,) = samplers.unlike(composed(*mixed, "learn.importance=recorded", *ORACLE))
    assert "samples the policy" in policy


@pytest.mark.parametrize("scale", ["default", "smoke", "local", "single-gpu", "paper", "rehearsal"])
def test_the_presets_correct_what_their_precision_makes(scale):
    assert samplers.unlike(parse(compose.compose([f"scale={scale}"], ROOT))) == []


def test_vllm_must_be_installed(monkeypatch):
    monkeypatch.setattr(support, "version", lambda: None)
    with pytest.raises(ConfigError, match=r"engine: vLLM is not installed; install it with `pip install"):
        check.check(composed(), ROOT)


@pytest.mark.parametrize("engine", ["vllm", "vllm_servers"])
def test_a_plan_for_another_machine_needs_no_vllm_here_and_says_that_it_is_missing(
    monkeypatch, capsys, engine
):
    monkeypatch.setattr(support, "version", lambda: None)
    words = ["plan", "scale=single-gpu", f"engine={engine}", "--arm", "full", "--device", "H100"]
    assert cli.main(["--root", str(ROOT), *words]) == 0
    out, err = capsys.readouterr()
    assert "full " in out
    assert "warning: engine: vLLM is not installed; install it with" in err


def test_a_training_still_needs_vllm(monkeypatch, capsys):
    monkeypatch.setattr(support, "version", lambda: None)
    words = ["--root", str(ROOT), "train", "--arm", "full", "scale=smoke", "engine=vllm"]
    assert cli.main(words) == 2
    assert "rlanything: engine: vLLM is not installed" in capsys.readouterr().err


def test_the_processes_of_all_nodes_are_counted(installed):
    check.check(composed("engine=vllm_servers", "train.nodes=2", "train.strategy=ddp"), ROOT)
    given = "engine.addresses=[http://gpu:8001]"
    with pytest.raises(ConfigError, match=r"addresses: 1 of them; each of the 2 processes .* at least 6"):
        check.check(composed("engine=vllm_servers", "train.nodes=2", given), ROOT)
    with pytest.raises(ConfigError, match=r"train\.nodes = 2.*allowed: train\.devices=1, train\.nodes=1"):
        check.check(composed("train.nodes=2"), ROOT)


def test_a_plan_counts_the_copies_and_the_cache():
    size = embedded_size(composed().model.embedded, "models/policy")
    sizes = dict.fromkeys(("policy", "reward", "adapter"), size)
    found = {}
    for engine in ("native", "vllm"):
        config = composed(f"engine={engine}")
        work = workload(config, "full", dict.fromkeys(sizes, 4096), Assumptions())
        found[engine] = memory(config, "full", sizes, work, 1)
    own = {part.name: part.bytes for part in found["vllm"].lasting if "vLLM" in part.name}
    assert own == {"vLLM's copy": 4 * size.parameters, "vLLM's keys and values": 2**30}
    assert max(p.bytes for p in found["vllm"].passing) <= max(p.bytes for p in found["native"].passing)
    assert {samplers.VLLM, samplers.SERVERS} <= set(samplers.READ_ONCE)


def test_a_plan_counts_what_the_servers_have():
    size = embedded_size(composed().model.embedded, "models/policy")
    sizes = dict.fromkeys(("policy", "reward", "adapter"), size)

    def served(*overrides: str) -> dict[tuple[str, str], float]:
        config = composed("engine=vllm_servers", *overrides)
        work = workload(config, "full", dict.fromkeys(sizes, 4096), Assumptions())
        parts = memory(config, "full", sizes, work, 1).lasting
        return {(part.name, part.model): part.bytes for part in parts if "servers" in part.name}

    found = served("engine.replicas=2")
    assert {model for _, model in found} == {*sizes, "all"}
    assert found["its servers' copies", "policy"] == 2 * 4 * size.parameters
    assert found["servers' keys and values", "all"] == 2**30, "all servers share it"
    assert served("engine.addresses=[http://gpu:8001]") == {}


def test_a_reply_has_room_in_the_context_of_vllm_or_in_that_of_its_endpoint():
    small = ("engine=vllm", "engine.context=64", "adaptation.max_tokens=64")
    with pytest.raises(ConfigError, match=r"adaptation\.max_tokens = 64: must be below engine\.context = 64"):
        composed(*small)
    assert composed(*small, "engine@endpoints.adapter=openai", "endpoints.adapter.model=any")
