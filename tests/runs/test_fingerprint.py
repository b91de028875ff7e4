"""Only the very same run is resumed: whatever changes a result changes its name, and nothing else does."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pytest
from stage_cases import ROOT

from rlanything.config import Config, parse
from rlanything.core.errors import ConfigError
from rlanything.planning import compose
from rlanything.runs import fingerprint, imports
from rlanything.stages import train

PROMPTS = "experiments/prompts/embedded"


@pytest.fixture
def root(tmp_path) -> Path:
    for name in ("data/tasks/train.jsonl", "models/policy/model.safetensors", "models/bootstrap.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    shutil.copytree(ROOT / PROMPTS, tmp_path / PROMPTS)
    return tmp_path


@cache
def config(*overrides: str) -> Config:
    return parse(compose.compose(["scale=smoke", *overrides], ROOT))


def key(root: Path, *overrides: str, arm: str = "full") -> str:
    return fingerprint.made_from(config(*overrides), root, arm).key


def test_the_same_run_has_the_same_name_wherever_it_lies(root, tmp_path_factory):
    other = tmp_path_factory.mktemp("elsewhere") / "copy"
    shutil.copytree(root, other)
    assert key(root) == key(other)


@pytest.mark.parametrize(
    "override",
    [
        "seed=1",
        "signals.lambda=2",
        "learn.policy.lr=3e-4",
        "learn.epsilon=0.1",
        "train.iterations=3",
        "rollout.temperature=0.7",
        "judge.m=2",
        "adaptation.alpha_low=0.1",
        "evaluate.curve_tasks=2",
        "env.distractors=[0,1]",
        "engine.max_batch=2",
        "arms.full.adapt=false",
    ],
)
def test_a_parameter_changes_the_name(root, override):
    assert key(root, override) != key(root)


@pytest.mark.parametrize(
    "override",
    [
        "train.workers=3",
        "arms.policy.step_votes=false",
        "bootstrap.reward.steps=1",
        "evaluate.repeats=7",
        "evaluate.votes=7",
        "evaluate.reward_rollouts=7",
        "judge.max_invalid=0.95",
    ],
)
def test_what_does_not_enter_the_run_changes_no_name(root, override):
    assert key(root, override) == key(root)


@pytest.mark.parametrize("engine", ["vllm", "vllm_servers"])
def test_how_far_log_probs_may_lie_apart_changes_no_name(root, engine):
    own = (f"engine={engine}", "model=local", "path=models/policy")
    assert key(root, *own, "engine.tolerance=0.5") == key(root, *own)


def test_an_argument_of_that_name_of_an_engine_of_others_changes_the_name(root):
    theirs = {"_target_": "theirs.Engine"}
    loose, strict = (
        config().model_copy(update={"engine": {**theirs, "tolerance": number}}) for number in (0.5, 0.1)
    )
    assert fingerprint.run_config(loose, "full") != fingerprint.run_config(strict, "full")


@pytest.mark.parametrize(
    "file", ["data/tasks/train.jsonl", "models/policy/model.safetensors", f"{PROMPTS}/judge.txt"]
)
def test_an_input_or_a_prompt_changes_the_name(root, file):
    before = key(root)
    with (root / file).open("a") as opened:
        opened.write(" ")
    assert key(root) != before


def test_a_new_input_file_changes_the_name(root):
    before = key(root)
    (root / "models" / "policy" / "generation_config.json").write_text("{}")
    assert key(root) != before


@pytest.fixture
def weights(tmp_path_factory) -> Path:
    """A checkpoint outside of the project."""
    place = tmp_path_factory.mktemp("elsewhere") / "mine"
    place.mkdir()
    (place / "model.safetensors").write_text("first")
    return place


@pytest.mark.parametrize(
    ("model", "arm", "reads"),
    [
        ("policy", "outcome", True),
        ("reward", "policy", True),
        ("adapter", "full", True),
        ("adapter", "outcome", False),
    ],
)
def test_weights_outside_of_the_project_change_the_name_of_the_arms_that_load_them(
    root, weights, model, arm, reads
):
    override = f"model.{model}.path={weights}"
    before = key(root, override, arm=arm)
    inputs = fingerprint.made_from(config(override), root, arm).inputs
    assert (f"{weights}/model.safetensors" in inputs) == reads
    (weights / "model.safetensors").write_text("other")
    assert (key(root, override, arm=arm) != before) == reads
    (weights / "model.safetensors").write_text("first")
    (weights / "README.md").write_text("for people")
    assert key(root, override, arm=arm) == before


def test_a_judge_that_only_the_measurement_asks_changes_no_name(root, weights):
    override = f"evaluate.solver={{path: {weights}, revision: null, allow_pickle: false}}"
    before = key(root, override)
    (weights / "model.safetensors").write_text("other")
    assert key(root, override) == before == key(root)


def test_weights_in_models_are_read_once_and_named_as_before(root):
    inputs = fingerprint.made_from(config(), root, "full").inputs
    files = fingerprint.input_files(config(), root, "full")
    assert list(inputs) == sorted(path.relative_to(root).as_posix() for path in files)


def test_the_commit_of_a_name_on_the_hub_is_part_of_the_name(root, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    override = "model.policy.path=someone/tiny"
    unknown = key(root, override)
    place = tmp_path / "hub" / "models--someone--tiny"
    names = {unknown}
    for commit in ("0" * 40, "1" * 40):
        (place / "snapshots" / commit).mkdir(parents=True)
        (place / "snapshots" / commit / "config.json").write_text("{}")
        (place / "refs").mkdir(exist_ok=True)
        (place / "refs" / "main").write_text(commit)
        assert fingerprint.made_from(config(override), root, "full").inputs["someone/tiny"] == commit
        names.add(key(root, override))
    assert len(names) == 3


def test_the_code_that_learns_is_part_of_the_name(root, tmp_path, monkeypatch):
    before = key(root)
    for name in imports.PACKAGES:
        shutil.copytree(ROOT / name, tmp_path / "code" / name)
    monkeypatch.setattr(imports, "package_folder", lambda name: tmp_path / "code" / name)
    assert key(root) == before
    for place, changes in (("learn/losses.py", True), ("report/tables.py", False), ("cli.py", False)):
        with (tmp_path / "code" / "rlanything" / place).open("a") as file:
            file.write("# another line\n")
        assert (key(root) != before) == changes
        before = key(root)


def test_arms_do_not_share_a_name(root):
    assert key(root, arm="outcome") != key(root, arm="policy")


def test_several_devices_need_torchrun_and_the_message_gives_the_command(root, monkeypatch):
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with pytest.raises(ConfigError, match=r"torchrun --nproc-per-node 2 -m rlanything train --arm full"):
        train.train_arm(config("train.devices=2"), root, "full")


@pytest.mark.parametrize(
    ("nodes", "here", "everywhere", "told"),
    [
        (2, "8", "8", r"train.nodes = 2 of train.devices = 8 are 16 processes, but 8 were started"),
        (1, "8", "16", r"train.nodes = 1 of train.devices = 8 are 8 processes, but 16 were started"),
        (2, "4", "8", r"train.devices = 8, but 4 process\(es\) were started here"),
    ],
)
def test_a_launch_on_other_nodes_than_configured_is_refused(root, monkeypatch, nodes, here, everywhere, told):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", here)
    monkeypatch.setenv("WORLD_SIZE", everywhere)
    with pytest.raises(ConfigError, match=told) as refused:
        train.train_arm(config("train.devices=8", f"train.nodes={nodes}"), root, "full")
    assert ("--nnodes 2" in str(refused.value)) == (nodes == 2)


def test_an_unknown_arm_is_refused_with_the_nearest_name(root):
    with pytest.raises(ConfigError, match=r"arm 'ful': unknown; did you mean 'full'\?"):
        train.train_arm(config(), root, "ful")


def test_an_error_of_one_seed_is_the_error_of_the_stage(root, monkeypatch):
    def fail(data, where, key, arm, seed):
        raise ConfigError(f"seed {seed} cannot run")

    monkeypatch.setattr(train, "train_seed", fail)
    with pytest.raises(ConfigError, match="seed 0 cannot run"):
        train.train_arm(config(), root, "full")
    assert not (root / "runs").exists()


def test_an_arm_that_takes_a_reward_model_of_lora_reads_its_base_too():
    learned = ("scale=single-gpu", "+arm@arms.policy_learned=policy_learned", "model.reward.path=Some/Model")
    for more, trained in (((), ["policy", "reward"]), (("learn.reward.lora=null",), ["policy"])):
        one = config(*learned, *more)
        found = fingerprint.checkpoints(one, "policy_learned")
        assert found == [getattr(one.model, name) for name in trained]
