"""What pictures cost in a plan: tokens, rows, calls, and the work and memory of vision towers."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from costs_cases import ERROR, ROOT, osworld

from benchmarks.plan.models import seeing_model, sizes_of
from benchmarks.plan.steps import measure_step, predicted_step
from rlanything.config import LoraConfig, parse
from rlanything.engines.sight.eyes import MOST_TOKENS
from rlanything.engines.vllm.support import Options
from rlanything.planning import check, compose
from rlanything.planning.costs.activations import activations
from rlanything.planning.costs.assumptions import Assumptions
from rlanything.planning.costs.devices import device
from rlanything.planning.costs.estimate import model_sizes
from rlanything.planning.costs.hours import hours
from rlanything.planning.costs.memory import BATCHED, LOOKED, memory
from rlanything.planning.costs.sizes import from_fields
from rlanything.planning.costs.tower import Tower
from rlanything.planning.costs.work.prompts import picture_tokens, policy_prompts, questions
from rlanything.planning.costs.work.workload import workload

POSITIONS = {"policy": 262_144, "reward": 262_144, "adapter": 40_960}


def test_pictures_are_priced():
    made, given = osworld(), Assumptions()
    assert picture_tokens(made, given) == 60 * 34
    assert picture_tokens(made, Assumptions(picture_tokens=7)) == 7
    assert picture_tokens(osworld("env.observe=tree"), given) == 0
    seen = policy_prompts(made, 262_144, given, 5)
    blind = policy_prompts(osworld("env.observe=tree"), 262_144, given, 5)
    assert [a - b for a, b in zip(seen, blind, strict=True)] == [2040, 4080, 6120, 6120, 6120]
    judged = questions(made, seen, 262_144, given).prompts
    unseen = questions(osworld("env.observe=tree"), blind, 262_144, given).prompts
    assert [a - b for a, b in zip(judged, unseen, strict=True)] == [4080] * 5


@pytest.mark.parametrize(("observe", "tokens"), [("screenshot", 768), ("both", 768), ("tree", 0)])
def test_pictures_of_the_small_desktop_are_priced(observe, tokens):
    changes = ["scale=local", "env=desktop", "path=x", f"env.observe={observe}"]
    made = parse(compose.compose(changes, ROOT))
    assert picture_tokens(made, Assumptions()) == tokens


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
        mergers=160_496_896,
        unused=2304 * 1152,
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
    made = osworld(f"env.observe={observe}", *shown, *changes)
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


LORA = LoraConfig(rank=4, alpha=8.0)
ACTIVATIONS = ("activations", "reward")


def peaks(tmp_path, kind, precision, recomputed, lora):
    """(predicted, measured) bytes of a step of a small model with pictures; and predicted as if it read text alone."""
    model, eyes, rows = seeing_model(kind)
    size = sizes_of(model, tmp_path)
    how = {"recomputed": recomputed, "lora": lora}
    measured = measure_step(model, [rows, rows], precision, eyes=eyes, **how)
    blind = predicted_step(replace(size, tower=None), rows, precision, **how)
    return predicted_step(size, rows, precision, **how), measured, blind


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "precision", "recomputed", "lora"),
    [
        # A processor without products of bfloat16 takes minutes for all weights.
        pytest.param("qwen3_vl", "bf16-true", True, None, marks=pytest.mark.slow),
        pytest.param("qwen3_vl", "bf16-mixed", True, LORA, marks=pytest.mark.slow),
        pytest.param("qwen2_5_vl", "bf16-mixed", True, None, marks=pytest.mark.slow),
        pytest.param("qwen2_5_vl", "bf16-true", False, None, marks=pytest.mark.slow),
        ("qwen2_5_vl", "32-true", True, LORA),
    ],
)
def test_the_memory_of_a_step_with_pictures_is_what_torch_allocates(
    tmp_path, kind, precision, recomputed, lora
):
    said, measured, blind = peaks(tmp_path, kind, precision, recomputed, lora)
    assert said == pytest.approx(measured, rel=ERROR)
    assert blind < 0.8 * measured, "here pictures take so much that their part is what is checked"


def test_a_frozen_tower_keeps_nothing(tmp_path):
    size = sizes_of(seeing_model("qwen3_vl")[0], tmp_path)
    assert size.tower is not None
    found = {}
    for trains in (None, LORA):
        of = {"tree": False, "lora": trains}
        without, shown = (activations(size, "bf16-true", 1000, 500, 10, shown=n, **of) for n in (0, 400))
        found[trains is None] = shown - without
    patches = size.tower.patches(400)
    assert patches == 1600
    assert found[True] == size.tower.kept(patches, "bf16-true", recomputed=False)
    assert found[True] > found[False] > 0


@pytest.mark.long
def test_a_frozen_tower_has_one_forward_pass_and_one_that_trains_is_computed_again():
    def learning(recomputed: bool, lora: LoraConfig | None = None) -> float:
        """Seconds that the reward model's tower takes while it learns."""
        made, work = seen("learn.importance=recorded", f"learn.gradient_checkpointing={recomputed}")
        learn = made.learn.model_copy(update={"reward": made.learn.reward.model_copy(update={"lora": lora})})
        made, sizes = made.model_copy(update={"learn": learn}), model_sizes(made, ROOT)
        own = sizes["reward"].parameters - sizes["reward"].tower.parameters
        blind = {**sizes, "reward": replace(sizes["reward"], tower=None, parameters=own)}
        one, other = (hours(made, "full", of, work, device("H100"), 1) for of in (sizes, blind))
        return one.phases["learn, reward"] - other.phases["learn, reward"]

    once = learning(False, LORA) / 2  # two operations a weight
    found = [learning(False), learning(True), learning(True, LORA)]
    assert [seconds / once for seconds in found] == pytest.approx([6, 8, 2])


def test_the_page_has_the_numbers_of_this_setting():
    made, work = seen()
    sizes = model_sizes(made, ROOT)
    blind = {name: replace(size, tower=None) for name, size in sizes.items()}
    whole, without = (
        next(p.bytes for p in memory(made, "full", of, work, 96).passing if (p.name, p.model) == ACTIVATIONS)
        for of in (sizes, blind)
    )
    page = " ".join((ROOT / "docs" / "plan.md").read_text().split())
    assert f"Of the {whole / 1e9:.1f} GB of activations" in page
    assert f"{(whole - without) / 1e9:.1f} GB are the vision tower's" in page


def test_a_tower_works_once_a_patch_and_its_mergers_once_a_token():
    tower = model_sizes(osworld(), ROOT)["policy"].tower
    assert tower is not None
    per_patch = 3 * 2 * 16 * 16 * 1152 + 27 * (4 * 1152**2 + 2 * 1152 * 4304)
    per_token = 4 * ((4 * 1152) ** 2 + 4 * 1152 * 4096)
    assert tower.products(1) == pytest.approx(
        4 * per_patch + per_token, rel=0.002
    )  # beside it, biases and norms


@pytest.mark.long
def test_what_is_read_at_once_takes_memory_and_vllm_reads_no_more_than_it_may():
    tower = model_sizes(osworld(), ROOT)["policy"].tower
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
    assert looking(LOOKED) < few < many < reading("engine.max_batch=64")
    assert reading("engine=vllm", "~engine.max_batched_tokens") == few
    assert (Options.max_batched_tokens, MOST_TOKENS) == (BATCHED, LOOKED)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        *((key, 10**6, "must be a whole number from 1 to 1,000") for key in ("depth", "num_hidden_layers")),
        ("hidden_size", 0, "must be a whole number from 1 to 16,777,216"),
        ("out_hidden_size", 10**12, "must be a whole number from 1 to 16,777,216"),
        ("intermediate_size", "x", "must be a whole number from 1 to 16,777,216"),
        ("patch_size", 10**6, "must be a whole number from 1 to 1,024"),
        ("spatial_merge_size", -2, "must be a whole number from 1 to 64"),
        ("num_position_embeddings", 10**12, "must be at most 16,777,216"),
    ],
)
def test_a_tower_that_nobody_could_build_is_refused(key, value, words):
    with pytest.raises(check.ConfigError, match=f"vision_config.{key} = {value}: {words}"):
        from_fields(damaged(**{key: value}), "x", "y")


@pytest.mark.parametrize("value", [[0] * 20_000, list(range(20_000)), [1, 1]])
def test_a_list_of_layers_is_short_and_names_each_once(value):
    with pytest.raises(
        check.ConfigError, match="deepstack_visual_indexes: at most 1,000 entries are allowed"
    ):
        from_fields(damaged(deepstack_visual_indexes=value), "x", "y")


def test_sizes_in_a_form_that_these_models_do_not_have_are_refused():
    with pytest.raises(check.ConfigError, match=r"no model can be built from its config\.json"):
        from_fields(damaged(patch_size=[16, 16]), "x", "y")


def damaged(**changes):
    fields = json.loads((ROOT / "experiments/model/sizes.json").read_text())["Qwen/Qwen3-VL-8B-Thinking"]
    return {**fields, "vision_config": {**fields["vision_config"], **changes}}


def test_a_model_that_sees_in_another_way_has_no_tower_in_the_plan():
    text = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1, "num_attention_heads": 2}
    text |= {"num_key_value_heads": 1, "vocab_size": 256, "max_position_embeddings": 512}
    eyes = {"depth": 1, "embed_dim": 32, "hidden_size": 64, "num_heads": 2, "mlp_ratio": 2, "patch_size": 14}
    size = from_fields({"model_type": "qwen2_vl", **text, "vision_config": eyes}, "x", "y")
    assert size.tower is None
    assert size.parameters > 0
