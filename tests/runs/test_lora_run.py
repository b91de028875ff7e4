"""Whole trainings with LoRA, over the tasks and models of the golden runs."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import golden_cases as golden
import pytest
import torch
from golden_lora import ARM, BOTH, REQUESTS, parts, storages
from golden_processes import with_params
from rank_cases import train, two_ranks
from safetensors.torch import load_file

from rlanything.cli import main
from rlanything.engines import checkpoint
from rlanything.engines.lora.merging import merged_state
from rlanything.engines.native import NativeEngine
from rlanything.runs import provenance
from rlanything.runs.layout import Layout
from rlanything.runs.seedrun import SeedRun

pytest.importorskip("peft", reason="needs peft: pip install '.[lora]'")


@pytest.fixture
def root(tmp_path) -> Path:
    return golden.project(tmp_path / "project")


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
        first = [[x for n, x in model.named_parameters() if ".lora_A." in n] for model in (policy, reward)]
        assert not any(map(torch.equal, *first)), "each model has first values of its own"
        sizes = [sum(p.numel() for p in m.parameters() if p.requires_grad) for m in (policy, reward)]
        assert sizes[0] == sizes[1] < 0.2 * sum(p.numel() for p in made.policy.whole.parameters())


def test_different_checkpoints_share_nothing(root):
    with ExitStack() as engines:
        made = parts(root, engines)
        assert made.reward is not None
        assert not storages(made.policy.network) & storages(made.reward.network)


@pytest.mark.parametrize("name", ["policy", "reward"])
def test_the_reference_is_the_model_as_it_was_before_lora(root, name):
    with ExitStack() as engines:
        made = parts(root, engines)
        known, _ = checkpoint.load(root / "models" / name)
        reference = made.module._references[name]
        assert reference is not None
        found = reference.state_dict()
        assert all(torch.equal(found[name], value) for name, value in known.state_dict().items())


@pytest.mark.slow
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
