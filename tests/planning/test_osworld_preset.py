"""The paper's GUI setting: its numbers, its price with pictures, and what is refused by its key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlanything.cli import main
from rlanything.config import parse
from rlanything.planning import check, compose
from rlanything.planning.costs import pictures
from rlanything.planning.costs.assumptions import Assumptions
from rlanything.planning.costs.prompts import policy_prompts, questions
from rlanything.planning.costs.sizes import from_fields

ROOT = Path(__file__).parents[2]
PAPER = ("scale=paper", "env=osworld")


def config(*more: str):
    return parse(compose.compose([*PAPER, *more], ROOT))


def test_the_numbers_are_those_of_the_paper():
    made = config()
    assert (made.rollout.tasks, made.rollout.rollouts, made.rollout.max_steps) == (12, 8, 30)
    assert (made.rollout.temperature, made.evaluate.temperature, made.judge.temperature) == (1.0, 0.0, 0.8)
    assert (made.evaluate.max_steps, made.train.iterations, made.judge.m) == (50, 240, 3)
    assert made.model.policy.path == made.model.reward.path == "Qwen/Qwen3-VL-8B-Thinking"
    assert (made.model.images.policy, made.model.images.reward) == (3, 2)
    assert (made.adaptation.marked, made.adaptation.critic_stages, made.adaptation.attempts) == ("any", 2, 3)


def test_pictures_are_priced():
    made, given = config(), Assumptions()
    assert pictures.tokens(made, given) == 60 * 34
    assert pictures.tokens(made, Assumptions(picture_tokens=7)) == 7
    assert pictures.tokens(config("env.observe=tree"), given) == 0
    seen = policy_prompts(made, 262_144, given, 5)
    blind = policy_prompts(config("env.observe=tree"), 262_144, given, 5)
    assert [a - b for a, b in zip(seen, blind, strict=True)] == [2040, 4080, 6120, 6120, 6120]
    judged = questions(made, seen, 262_144, given).prompts
    unseen = questions(config("env.observe=tree"), blind, 262_144, given).prompts
    assert [a - b for a, b in zip(judged, unseen, strict=True)] == [4080] * 5


@pytest.mark.parametrize(("observe", "tokens"), [("screenshot", 768), ("both", 768), ("tree", 0)])
def test_pictures_of_the_small_desktop_are_priced(observe, tokens):
    changes = ["scale=local", "env=desktop", "path=x", f"env.observe={observe}"]
    made = parse(compose.compose(changes, ROOT))
    assert pictures.tokens(made, Assumptions()) == tokens


def test_a_vision_tower_is_counted():
    declared = json.loads((ROOT / "experiments/model/sizes.json").read_text())["Qwen/Qwen3-VL-8B-Thinking"]
    whole = from_fields(declared, "x", "y").parameters
    text = from_fields(
        {**declared["text_config"], "model_type": "qwen3", "tie_word_embeddings": False}, "x", "y"
    )
    assert (whole, whole - text.parameters) == (8_767_123_696, 576_388_336)
    assert from_fields(declared, "x", "y").normed_heads


def test_the_plan_prices_it(capsys):
    assert (
        main(["--root", str(ROOT), "plan", *PAPER, "--arm", "full", "--device", "H200", "--devices", "96"])
        == 0
    )
    printed = capsys.readouterr().out
    assert "222 train, 222 in_domain, 139 out_of_domain, 93 reward_panel" in printed
    assert "240 of 12 tasks x 8 rollouts, at most 30 steps, 3 votes a step" in printed


BLIND = ("model.images.policy=0", "model.images.reward=0")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (BLIND, r"env.observe = 'screenshot': the screen is a picture only, and model.images.policy = 0"),
        (["model.images.policy=0"], r"env.observe = 'screenshot': the screen is a picture only"),
        (
            ["env.observe=tree"],
            r"model.images.policy = 3: with env.observe = 'tree' the environment shows no",
        ),
        (
            ["env.observe=tree", "model.images.policy=0"],
            r"model.images.reward = 2: with env.observe = 'tree' the environment shows no pictures",
        ),
        (["env=alfworld"], r"model.images.policy = 1: this environment shows no pictures. Set"),
    ],
)
def test_what_is_not_seen_is_refused_by_its_key(changes, words, tmp_path, monkeypatch):
    monkeypatch.setenv("OSWORLD_DATA", str(tmp_path))
    more = [*changes, "model.prompts=experiments/prompts/desktop"]
    if "env=alfworld" in changes:
        more += ["model.images.policy=1"]
    with pytest.raises(check.ConfigError, match=words):
        check.check(config(*more), ROOT, engine=False)


SEVERAL = ("train.nodes=12", "train.devices=8")


@pytest.mark.parametrize(
    "changes",
    [
        (),
        ("engine=vllm",),
        ("env.observe=both",),
        ("env.observe=both", *BLIND),
        ("env.observe=tree", *BLIND),
        (*SEVERAL, "train.strategy=fsdp"),
        (*SEVERAL, "train.strategy=ddp"),
        (*SEVERAL, "train.strategy=fsdp", "engine=vllm_servers"),
        ("+evaluate.solver.path=Qwen/Qwen3-VL-32B-Thinking", "+evaluate.reward_policy.path=Qwen/x"),
    ],
)
def test_what_is_seen_is_accepted(changes, tmp_path, monkeypatch):
    monkeypatch.setenv("OSWORLD_DATA", str(tmp_path))
    check.check(config(*changes), ROOT, engine=False)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("engine=native", r"model.images.policy = 3: only engine=transformers, vllm and vllm_servers read"),
    ],
)
def test_what_cannot_run_with_pictures_is_named(change, words):
    with pytest.raises(check.ConfigError, match=words):
        config(change)
