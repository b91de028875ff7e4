"""Whole trainings with LoRA, over the tasks and models of the golden runs."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import golden_cases as golden
import pytest
import torch
from golden_processes import with_params
from rank_cases import train, two_ranks
from safetensors.torch import load_file, save_file

from rlanything.checks.identity import identity
from rlanything.cli import main
from rlanything.config import Checkpoint
from rlanything.core.errors import ConfigError
from rlanything.core.types import Request
from rlanything.engines import checkpoint
from rlanything.engines.lora.injection import trained as trained_weights
from rlanything.engines.lora.merging import merged_state
from rlanything.engines.native import NativeEngine
from rlanything.engines.placement import Role
from rlanything.runs import build, provenance
from rlanything.runs.layout import Layout, LoraCheckpoint, as_trained, trained
from rlanything.runs.networks import Networks
from rlanything.runs.parts import Parts, RunId, make_parts
from rlanything.runs.seedrun import SeedRun

pytest.importorskip("peft", reason="needs peft: pip install '.[lora]'")

ARM = "full"
LORA = {"lr": 1e-3, "lora": {"rank": 4, "alpha": 8.0}}
BOTH: dict[str, Any] = {
    "learn__policy": LORA,
    "learn__reward": LORA,
    "learn__kl_reference": "base",
    "learn__importance": "recomputed",
}


@pytest.fixture
def root(tmp_path) -> Path:
    return golden.project(tmp_path / "project")


def parts(root: Path, engines: ExitStack, **changes: Any) -> Parts:
    config = golden.configuration(**{**BOTH, **changes})
    return make_parts(config, RunId(root, ARM, 0, root / "live"), engines)


@pytest.mark.long
def test_a_killed_run_ends_with_the_same_bytes_and_its_checkpoints_are_what_sampled(
    root, tmp_path, monkeypatch
):
    seen: dict[str, dict[str, torch.Tensor]] = {}
    finish = SeedRun._finish

    def remember(run: SeedRun, folder: Path) -> None:
        """The weights that the engines sampled from last."""
        for name, model in (("policy", run.parts.policy), ("reward", run.parts.reward)):
            assert model is not None
            assert isinstance(model.chat.engine, NativeEngine)
            model.chat.engine.sync(99)
            seen[name] = {n: x.clone() for n, x in merged_state(model.network).items()}
            probe[name] = model.chat.engine.generate(REQUESTS)
        finish(run, folder)

    probe: dict[str, Any] = {}
    monkeypatch.setattr(SeedRun, "_finish", remember)
    lines = golden.run(root, ARM, **BOTH)
    run = Layout(root).run(ARM, 0)
    for name in ("policy", "reward"):
        stored = load_file(run / "checkpoints" / name / "model.safetensors")
        assert all(torch.equal(stored[n], seen[name][n]) for n in stored)
        engine = NativeEngine(*checkpoint.load(run / "checkpoints" / name))
        found = engine.generate(REQUESTS)
        assert [c.ids for c in found] == [c.ids for c in probe[name]]
        assert [c.logprobs for c in found] == [c.logprobs for c in probe[name]]
    mismatch = [x["metrics"]["policy/mismatch_max"] for x in lines if "policy/rows" in x.get("metrics", {})]
    assert len(mismatch) == 3
    assert max(mismatch) < 1e-4

    other = golden.project(tmp_path / "other")
    with golden.killed_in(1):
        golden.run(other, ARM, **BOTH)
    golden.run(other, ARM, **BOTH)
    names = [p.relative_to(run) for p in sorted(run.rglob("*")) if p.is_file()]
    again = Layout(other).run(ARM, 0)
    assert {str(name.parts[0]) for name in names} >= {"checkpoints", "lora", "metrics.jsonl"}
    assert [n for n in names if (run / n).read_bytes() != (again / n).read_bytes()] == []


HALVED = {**BOTH, "train__precision": "bf16-mixed"}
FIRST_STEPS = 1e-4
"""How far LoRA's weights are from their first values after ten steps of AdamW at a rate of 1e-5."""


def finished(root: Path, **changes: Any) -> dict[str, list[torch.Tensor]]:
    """Write what a run with LoRA leaves after its first steps. Returns the log-probs of both of its models."""
    found = {}
    with ExitStack() as engines:
        made = parts(root, engines, **changes)
        assert made.reward is not None
        for name, model in (("policy", made.policy), ("reward", made.reward)):
            torch.manual_seed(5)
            weights = {
                n: x + FIRST_STEPS * torch.randn_like(x) for n, x in trained_weights(model.network).items()
            }
            model.save(weights, Layout(root).run(ARM, 0), name)
            found[name] = logprobs(model.network)
    return found


def logprobs(model: Any) -> list[torch.Tensor]:
    """Of all tokens at every place of the prompts, as the model itself computes them."""
    with torch.inference_mode():
        return [
            model(torch.tensor([request.prompt_ids])).logits.float().log_softmax(-1) for request in REQUESTS
        ]


def equal(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(map(torch.equal, one, other))


@pytest.mark.parametrize("name", ["policy", "reward"])
def test_what_is_measured_in_bfloat16_is_the_model_that_trained(root, name):
    known = finished(root, **HALVED)[name]
    config = golden.configuration(**HALVED)
    made = trained(config, root, ARM, 0, name)
    assert isinstance(made, LoraCheckpoint)
    network, _ = build.load(config, made, root, Role.FROZEN)
    assert equal(logprobs(network), known)
    # The merged weights, rounded to bfloat16, have lost the update in nearly all places.
    base = build.load(config, getattr(config.model, name), root, Role.FROZEN)[0]
    rounded, _ = checkpoint.load(root / made.path, dtype=torch.bfloat16)
    pairs = zip(base.parameters(), rounded.parameters(), strict=True)
    same = [(one == other).float().mean() for one, other in pairs if one.ndim == 2]
    assert min(same) > 0.8
    assert not equal(logprobs(rounded), known)


def test_a_model_that_trained_without_lora_is_its_own_checkpoint(root):
    finished(root, **HALVED)
    made = trained(golden.configuration(), root, ARM, 0, "policy")
    assert not isinstance(made, LoraCheckpoint)
    assert made.path == f"runs/{ARM}/seed-0/checkpoints/policy"


def test_a_reward_model_that_lora_trained_judges_and_learns_on_as_it_was_trained(root):
    """For `reward_from`: the model that does not train, its reference, and one that goes on learning."""
    known = finished(root, **HALVED)["reward"]
    config = golden.configuration(**HALVED)
    made = trained(config, root, ARM, 0, "reward")
    with ExitStack() as engines:
        networks = Networks(config, root, 1, engines)
        still, other = networks.still(made).network, networks.learning(made, "reward", lambda *_: None)
        assert equal(logprobs(still), known)
        assert equal(logprobs(other.network), known)
        reference, _ = networks.frozen(made)
        assert equal(logprobs(reference), known)
        assert storages(reference) & storages(other.network) == storages(other.whole)
        assert other.chat.engine is not None
        other.save(trained_weights(other.network), root / "again", "reward")
    settings = json.loads((root / "again" / "lora" / "reward" / "adapter_config.json").read_text())
    assert settings["base_model_name_or_path"] == config.model.reward.path
    stored = load_file(root / "again" / "checkpoints" / "reward" / "model.safetensors")
    merged = load_file(root / made.path / "model.safetensors")
    assert all(torch.equal(stored[n], merged[n]) for n in merged)


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda file: file.unlink(), "cannot be read"),
        (lambda file: file.write_bytes(file.read_bytes()[:100]), "cannot be read"),
        (lambda file: save_file({"a": torch.zeros(1)}, file), "these are not LoRA's weights of this model"),
    ],
)
def test_missing_or_foreign_weights_of_lora_are_named(root, harm, words):
    finished(root, **HALVED)
    config = golden.configuration(**HALVED)
    made = trained(config, root, ARM, 0, "policy")
    assert isinstance(made, LoraCheckpoint)
    harm(root / made.lora / "adapter_model.safetensors")
    with pytest.raises(ConfigError, match=f"adapter_model.safetensors: .*{words}.*train again"):
        build.load(config, made, root, Role.FROZEN)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"learn__policy": {**LORA, "lora": {"rank": 2, "alpha": 8.0}}},
            "r = 4, and the configuration has 2",
        ),
        (
            {"learn__policy": {**LORA, "lora": {"rank": 4, "alpha": 16.0}}},
            "lora_alpha = 8.0, and .* has 16.0",
        ),
        (
            {"model__policy__path": "models/reward"},
            "base_model_name_or_path = 'models/policy', and .*'models/reward'",
        ),
    ],
)
def test_weights_of_another_base_rank_or_scale_are_named(root, changes, words):
    """LoRA's weights alone do not say what they belong to: on another base they would be another model."""
    finished(root, **HALVED)
    config = golden.configuration(**{**HALVED, **changes})
    with pytest.raises(ConfigError, match=f"adapter_config.json: {words}.*put the configuration back"):
        build.load(config, trained(config, root, ARM, 0, "policy"), root, Role.FROZEN)


def test_a_configured_path_to_a_run_is_measured_as_it_was_trained(root):
    """As of `evaluate.reward_policy`, or of a solver."""
    known = finished(root, **HALVED)["policy"]
    config = golden.configuration(**HALVED)
    for path in (f"runs/{ARM}/seed-0/checkpoints/policy", f"./runs/{ARM}/seed-0/checkpoints/policy"):
        network, chat = build.measured(config, "policy", Checkpoint(path=path), root)
        chat.close()
        assert equal(logprobs(network), known)
    other = Checkpoint(path="models/policy")
    assert as_trained(config, root, other) is other
    plain = golden.configuration()
    path = Checkpoint(path=f"runs/{ARM}/seed-0/checkpoints/policy")
    assert as_trained(plain, root, path) is path


def test_what_depends_on_a_model_depends_on_its_base_and_on_loras_weights(root):
    finished(root, **HALVED)
    made = trained(golden.configuration(**HALVED), root, ARM, 0, "policy")
    assert isinstance(made, LoraCheckpoint)
    first = identity(made, root)
    assert set(first) == {"base", "lora"}
    (root / made.lora / "adapter_config.json").write_text("{}")
    assert identity(made, root)["lora"] != first["lora"]
    assert identity(made, root)["base"] == first["base"]


REQUESTS = [Request(tuple(range(5, 12 + n)), n, 6) for n in range(4)]


def storages(*models: torch.nn.Module | None) -> set[int]:
    return {p.data_ptr() for model in models if model is not None for p in model.parameters()}


def test_roles_with_the_same_checkpoint_hold_its_weights_once(root):
    """Policy, reward model, both references, and the model that rewrites tasks."""
    one = {f"model__{role}__path": "models/policy" for role in ("policy", "reward", "adapter")}
    with ExitStack() as engines:
        made = parts(root, engines, **one)
        assert made.reward is not None
        policy, reward = made.policy.network, made.reward.network
        adapter = made.loop.proposals.chat_model.engine._model
        references = made.module._references.values()
        base = storages(made.policy.whole)
        assert storages(made.reward.whole, *references, adapter) == base
        assert storages(policy) & storages(reward) == base
        assert len(storages(policy, reward)) == len(base) + 2 * 2 * 14  # models, factors, matrices
        sizes = [sum(p.numel() for p in m.parameters() if p.requires_grad) for m in (policy, reward)]
        assert sizes[0] == sizes[1] < 0.2 * sum(p.numel() for p in made.policy.whole.parameters())


def test_different_checkpoints_share_nothing(root):
    with ExitStack() as engines:
        made = parts(root, engines)
        assert made.reward is not None
        assert not storages(made.policy.network) & storages(made.reward.network)


def test_the_reference_is_the_model_as_it_was_before_lora(root):
    with ExitStack() as engines:
        made = parts(root, engines)
        known, _ = checkpoint.load(root / "models" / "policy")
        reference = made.module._references["policy"]
        assert reference is not None
        found = reference.state_dict()
        assert all(torch.equal(found[name], value) for name, value in known.state_dict().items())


@pytest.mark.long
@pytest.mark.integration
def test_a_run_that_one_process_began_goes_on_with_two_that_divide_it(root, tmp_path, capsys):
    """LoRA with `fsdp`, its parts offloaded: tokens, decisions and, to rounding, numbers are those of one process."""
    alone = golden.run(root, ARM, **BOTH)
    other = golden.project(tmp_path / "other")
    with golden.killed_in(1):
        golden.run(other, ARM, **BOTH)
    placed = {"train__devices": 2, "train__strategy": "fsdp", "train__offload": True}
    with_params(other, **BOTH, **placed)
    assert main(["--root", str(other), "redivide", "--arm", ARM]) == 0
    assert "train.strategy: auto -> fsdp" in capsys.readouterr().out
    two_ranks(other, train, ARM)
    found = golden.kept(Layout(other).run(ARM, 0))
    assert golden.first_difference(alone, found) is None
    record = provenance.read(other, ARM)
    values = {"train.devices": 1, "train.strategy": "auto", "train.offload": False}
    now = {"train.devices": 2, "train.strategy": "fsdp", "train.offload": True}
    assert record["divisions"] == [{"first": {"0": 0}, "values": values}, {"first": {"0": 1}, "values": now}]
    stored, known = (Layout(place).run(ARM, 0) for place in (other, root))
    names = [p.relative_to(known) for p in known.rglob("*.safetensors")]
    assert len(names) == 4
    for name in names:
        one, two = load_file(known / name), load_file(stored / name)
        assert one.keys() == two.keys()
        assert max(float((one[n] - two[n]).abs().max()) for n in one) < 1e-5
