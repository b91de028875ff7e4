"""Warm starts: how an embedded model begins, and what that is worth."""

from __future__ import annotations

import pytest
import torch
from stage_cases import small
from transformers import Qwen2ForCausalLM

from rlanything.config import Architecture, SupervisedConfig
from rlanything.learn.supervised import fit, fresh_model
from rlanything.rewards.requirements import teacher
from rlanything.runs import build, families
from rlanything.stages.bootstrap.tokenizer import train_tokenizer
from rlanything.stages.bootstrap.warmstart import demonstration_rows

SIZES = Architecture(hidden=96, intermediate=288, layers=3, heads=4, kv_heads=2, vocab=662, positions=4096)


def fresh(seed: int) -> Qwen2ForCausalLM:
    return fresh_model(SIZES, SIZES.vocab, 1, 0, seed)


def test_the_layers_of_a_fresh_model_add_nothing():
    model = fresh(0)
    ids = torch.tensor([[5, 7, 5, 9]])
    embedded = model.get_input_embeddings()(ids)
    with torch.no_grad():
        assert torch.equal(model.model(ids).last_hidden_state, model.model.norm(embedded))


def test_a_fresh_model_is_decided_by_its_seed():
    first, again, other = (fresh(seed).state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["lm_head.weight"], other["lm_head.weight"])


def random_writers(model: Qwen2ForCausalLM) -> Qwen2ForCausalLM:
    """The model with random output projections, as transformers initialises them."""
    for layer in model.model.layers:
        for matrix in (layer.self_attn.o_proj.weight, layer.mlp.down_proj.weight):
            torch.nn.init.normal_(matrix, std=model.config.initializer_range)
    return model


@pytest.mark.slow
def test_a_policy_whose_layers_begin_at_nothing_learns_more_in_as_many_steps(tiny_project):
    """On 2,560 demonstrations; prints the losses of both beginnings."""
    config = small("bootstrap.policy.episodes=2560")
    family, prompts = build.family(config), build.prompts(config, tiny_project)
    tasks = families.practice_tasks(config, tiny_project, family)
    demos = [teacher(family).demonstrate(task, number, 0.15)[:15] for number, task in enumerate(tasks)]
    tokenizer = train_tokenizer(
        [t for demo in demos[:500] for seen, done in demo for t in (seen.text, done)], 1024
    )
    settings = SupervisedConfig(episodes=2560, steps=160, batch=16, context_weight=0.3)
    for seed in range(3):
        losses = []
        for change in (lambda model: model, random_writers):
            model = change(fresh_model(SIZES, len(tokenizer), 1, 0, seed))
            chat_model = build.chat_model(config, model, tokenizer)
            rows = [demonstration_rows(chat_model, prompts, demo, 0.3) for demo in demos]
            losses.append(fit(model, rows, settings, seed, lambda *_: None))
        print(f"seed {seed}: loss {losses[0]:.3f} from layers of zeros, {losses[1]:.3f} from random layers")
        assert losses[0] < losses[1]
