"""What a finished run with LoRA is measured with: the frozen weights, and LoRA's beside them."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import golden_cases as golden
import pytest
import torch
from golden_lora import ARM, BOTH, LORA, REQUESTS, parts, storages
from safetensors.torch import load_file, save_file

from rlanything.checks.identity import identity
from rlanything.config import Checkpoint
from rlanything.core.errors import ConfigError
from rlanything.engines import checkpoint
from rlanything.engines.lora.injection import trained as trained_weights
from rlanything.engines.placement import Role
from rlanything.exams.answering import made_with
from rlanything.runs import build
from rlanything.runs.layout import Layout, LoraCheckpoint, as_trained, trained
from rlanything.runs.networks import Networks
from rlanything.stages import evaluate
from rlanything.stages.declared import STAGES

pytest.importorskip("peft", reason="needs peft: pip install '.[lora]'")


@pytest.fixture
def root(tmp_path) -> Path:
    return golden.project(tmp_path / "project")


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
    network, _ = build.load(config, made, root, Role.FROZEN, name)
    assert equal(logprobs(network), known)
    # The merged weights, rounded to bfloat16, have lost the update in nearly all places.
    base = build.load(config, getattr(config.model, name), root, Role.FROZEN, name)[0]
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
        still, other = (
            networks.still(made, "reward").network,
            networks.learning(made, "reward", lambda *_: None),
        )
        assert equal(logprobs(still), known)
        assert equal(logprobs(other.network), known)
        reference, _ = networks.frozen(made, "reward")
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
        build.load(config, made, root, Role.FROZEN, "policy")


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
        build.load(config, trained(config, root, ARM, 0, "policy"), root, Role.FROZEN, "policy")


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
    policy = made_with(golden.configuration(**HALVED), root, made, 0)["policy"]
    assert set(policy) == {"base", "lora"}
    assert policy["lora"] == identity(made, root)["lora"]


def test_the_stage_that_evaluates_depends_on_what_it_reads():
    (stage,) = [stage for stage in STAGES if stage.name == "evaluate"]
    config = golden.configuration(**HALVED)
    assert {"models/policy", "models/reward"} <= set(stage.deps(config))
    assert {config.model.policy, config.model.reward} <= set(stage.loads(config))
    assert {"learn.policy.lora", "learn.reward.lora"} <= set(stage.params)
    assert not {"models/policy", "models/reward"} & set(stage.deps(golden.configuration()))


def test_a_base_that_changes_while_it_is_measured_is_named(root, monkeypatch):
    finished(root, **HALVED)

    def changed(*_: Any) -> dict[str, Any]:
        file = root / "models" / "policy" / "config.json"
        file.write_text(file.read_text() + " ")
        return {}

    monkeypatch.setattr(evaluate, "_measure", changed)
    monkeypatch.setattr(Layout, "check_bootstrap", lambda _: None)
    with pytest.raises(ConfigError, match="models/policy: it changed while it was in use"):
        evaluate.evaluate_arm(golden.configuration(**HALVED), root, ARM)
    assert not Layout(root).evaluation(ARM).exists()


@pytest.mark.parametrize(("own", "shares"), [(None, True), ("bf16-true", True), ("32-true", False)])
def test_frozen_weights_are_shared_where_both_models_have_them_in_one_format(root, own, shares):
    """With LoRA frozen weights are bfloat16 with both precisions but `32-true`."""
    config = golden.configuration(**HALVED | {"learn__reward": LORA | {"precision": own}})
    with ExitStack() as engines:
        networks = Networks(config, root, 1, engines)
        policy, reward = (
            networks.learning(config.model.policy, name, lambda *_: None) for name in ("policy", "reward")
        )
        assert policy.whole.dtype == torch.bfloat16
        assert reward.whole.dtype == (torch.bfloat16 if shares else torch.float32)
        assert (storages(policy.whole) == storages(reward.whole)) is shares
        assert {x.dtype for x in trained_weights(reward.network).values()} == {torch.float32}
