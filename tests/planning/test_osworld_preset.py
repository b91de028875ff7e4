"""The paper's GUI setting: its numbers, its price with pictures, and what is refused by its key."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.plan import measure_step, predicted_step, seeing_model, sizes_of
from rlanything.cli import main
from rlanything.config import LoraConfig, parse
from rlanything.planning import check, compose
from rlanything.planning.costs import pictures
from rlanything.planning.costs.activations import activations
from rlanything.planning.costs.assumptions import Assumptions
from rlanything.planning.costs.estimate import model_sizes
from rlanything.planning.costs.memory import memory
from rlanything.planning.costs.prompts import policy_prompts, questions
from rlanything.planning.costs.sizes import from_fields
from rlanything.planning.costs.tower import Tower
from rlanything.planning.costs.workload import workload

ROOT = Path(__file__).parents[2]
POSITIONS = {"policy": 262_144, "reward": 262_144, "adapter": 40_960}
ERROR = 0.09
"""How far a predicted peak may be from the measured one, as a share of it."""
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
    size = from_fields(declared, "x", "y")
    assert size.normed_heads
    assert size.tower == Tower(
        parameters=576_388_336,
        layers=27,
        hidden=1152,
        intermediate=4304,
        heads=16,
        numbers=3 * 2 * 16 * 16,
        merged=4,
        outputs=4,
        gated=False,
    )


def seen(*changes, observe="screenshot", images=(3, 2)):
    """(configuration, the work of an iteration of `full`) with that many pictures for policy and reward model."""
    policy, reward = images
    shown = (f"model.images.policy={policy}", f"model.images.reward={reward}")
    made = config(f"env.observe={observe}", *shown, *changes)
    return made, workload(made, "full", POSITIONS, Assumptions())


def test_every_row_and_call_says_how_much_of_it_is_pictures():
    made, work = seen("rollout.max_steps=4", "engine=vllm")
    _, blind = seen("rollout.max_steps=4", "engine=vllm", observe="tree", images=(0, 0))
    assert [row.shown for row in work.rows["policy"]] == [2040, 4080, 6120, 6120]
    # A question that shows pictures is a row of its own, as in `learn.packing.reward_rows`.
    assert [row.shown for row in work.rows["reward"]] == [4080] * len(work.rows["reward"])
    assert len(work.rows["reward"]) >= 4
    calls = {each.name: each for each in work.calls}
    acts, judged = calls["act"], calls["judge"]
    assert (acts.shown, acts.seen) == (6120, acts.count / 4 * (2040 + 4080 + 6120 + 6120))
    assert (judged.shown, judged.seen) == (4080, judged.count / made.judge.m * 4080)
    assert {each.shown for each in blind.calls} == {0}
    (again,) = (each for each in seen("rollout.max_steps=4")[1].calls if each.name == "judge")
    assert again.seen == judged.seen * made.judge.m  # transformers reads a question again for every vote


@pytest.mark.parametrize(
    ("kind", "precision", "recomputed"),
    [
        ("qwen3_vl", "bf16-true", True),
        ("qwen3_vl", "32-true", False),
        ("qwen2_5_vl", "bf16-mixed", True),
        ("qwen2_5_vl", "bf16-true", False),
    ],
)
def test_the_memory_of_a_step_with_pictures_is_what_torch_allocates(tmp_path, kind, precision, recomputed):
    model, eyes, rows = seeing_model(kind)
    size = sizes_of(model, tmp_path)
    peak = measure_step(model, [rows, rows], precision, recomputed=recomputed, eyes=eyes)
    said = predicted_step(size, rows, precision, recomputed=recomputed)
    assert said == pytest.approx(peak, rel=ERROR)
    blind = predicted_step(replace(size, tower=None), rows, precision, recomputed=recomputed)
    assert blind < 0.8 * peak, "here pictures take so much that their part is what is checked"


def test_a_frozen_tower_keeps_nothing_and_takes_less_time(tmp_path):
    size = sizes_of(seeing_model("qwen3_vl")[0], tmp_path)
    assert size.tower is not None
    lora, found = LoraConfig(rank=4, alpha=8.0), {}
    for trains in (None, lora):
        of = {"tree": False, "lora": trains}
        without, shown = (activations(size, "bf16-true", 1000, 500, 10, shown=n, **of) for n in (0, 400))
        found[trains is None] = shown - without
    patches = size.tower.patches(400)
    assert patches == 1600
    assert found[True] == size.tower.kept(patches, "bf16-true", recomputed=False)
    assert found[True] > 2 * found[False] > 0


def test_what_is_read_at_once_takes_memory_and_vllm_reads_no_more_than_it_may():
    tower = model_sizes(config(), ROOT)["policy"].tower
    assert tower is not None

    def reading(*changes):
        """Bytes while the policy reads prompts that show 6,120 tokens of pictures each."""
        made, work = seen("rollout.max_tokens=1", *changes)
        found = memory(made, "full", model_sizes(made, ROOT), work, 1)
        (part,) = (each for each in found.passing if "(act)" in each.name)
        return part.bytes

    def looking(tokens):
        patches = tower.patches(tokens)
        return tower.pixels(patches) + tower.working(patches, 4)

    one = reading("engine=vllm", "engine.max_batch=1", "engine.max_batched_tokens=64")
    assert looking(6120) < one < 1.01 * looking(6120)  # beside it, the logits
    few, many = (reading("engine=vllm", f"engine.max_batched_tokens={n}") for n in (8192, 32768))
    assert looking(8192) < few < many < reading("engine.max_batch=64")


@pytest.mark.parametrize(("key", "value"), [("depth", 10**6), ("hidden_size", 0), ("intermediate_size", "x")])
def test_a_tower_that_nobody_could_build_is_refused(key, value):
    fields = json.loads((ROOT / "experiments/model/sizes.json").read_text())["Qwen/Qwen3-VL-8B-Thinking"]
    damaged = {**fields, "vision_config": {**fields["vision_config"], key: value}}
    with pytest.raises(check.ConfigError, match=f"vision_config.{key} = {value}: must be a whole number"):
        from_fields(damaged, "x", "y")


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
