"""The dry run's numbers: parameters against the real model, time from the calibration."""

from pathlib import Path

import pytest

from rlanything.config import Architecture, parse
from rlanything.planning import compose, plan
from rlanything.planning.costs.estimate import model_sizes

ROOT = Path(__file__).parents[2]
CONFIG = parse(compose.compose(["scale=smoke", "train.seeds=3", "train.workers=2"], ROOT))
SIZES = model_sizes(CONFIG, ROOT)


@pytest.mark.parametrize(
    "sizes",
    [Architecture(), Architecture(hidden=96, intermediate=200, layers=3, heads=6, kv_heads=3, vocab=500)],
)
def test_parameters_are_those_of_the_real_model(sizes):
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(
        vocab_size=sizes.vocab,
        hidden_size=sizes.hidden,
        intermediate_size=sizes.intermediate,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        num_key_value_heads=sizes.kv_heads,
        tie_word_embeddings=True,
    )
    assert sizes.parameters == Qwen2ForCausalLM(config).num_parameters()


def test_time_is_iterations_times_rounds_of_seeds(tmp_path):
    planned = plan.plan_arm(CONFIG, tmp_path, "full", lambda config, root, arm: 1.5)
    assert planned.seconds == 1.5 * CONFIG.train.iterations * 2  # three seeds, two at a time
    text = plan.render(CONFIG, SIZES, [planned])
    assert "Training takes about 0:06" in text


def test_time_is_unknown_without_a_calibration(tmp_path):
    planned = plan.plan_arm(CONFIG, tmp_path, "full", lambda config, root, arm: None)
    assert planned.seconds is None
    assert "rlanything bootstrap" in plan.render(CONFIG, SIZES, [planned])


def test_an_arm_that_replaces_tasks_may_roll_out_so_many_batches_and_no_more_than_there_are_tasks(tmp_path):
    for batches, tasks in ((10, CONFIG.tasks.train), (2, 2 * CONFIG.rollout.tasks)):
        more = ["+arm@arms.dapo=dynamic_sampling", f"arms.dapo.max_batches={batches}"]
        config = parse(compose.compose(["scale=smoke", *more], ROOT))
        planned = plan.plan_arm(config, tmp_path, "dapo")
        assert planned.rollouts == config.train.iterations * tasks * config.rollout.rollouts
