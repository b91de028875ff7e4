"""Warm starts: how an embedded model begins, and what that is worth."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from stage_cases import small
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import Qwen2ForCausalLM

from rlanything.config import Architecture, SupervisedConfig
from rlanything.learn.packing import NO_BRANCH, Row
from rlanything.learn.supervised.fit import fit
from rlanything.learn.supervised.fresh import fresh_model
from rlanything.learn.supervised.gradient import halves, in_halves, whole
from rlanything.learn.supervised.wide_products import wide_products
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
    taught = SupervisedConfig(episodes=2560, steps=160, batch=16, context_weight=0.3)
    for seed in range(3):
        losses = []
        for change in (lambda model: model, random_writers):
            model = change(fresh_model(SIZES, len(tokenizer), 1, 0, seed))
            chat_model = build.chat_model(config, model, tokenizer)
            rows = [demonstration_rows(chat_model, prompts, demo, 0.3) for demo in demos]
            losses.append(fit(model, rows, taught, seed, lambda *_: None))
        print(f"seed {seed}: loss {losses[0]:.3f} from layers of zeros, {losses[1]:.3f} from random layers")
        assert losses[0] < losses[1]


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(2, 40), min_size=1, max_size=9))
def test_two_halves_have_the_gradient_of_the_whole(lengths):
    model, rows = fresh(0), []
    for number, length in enumerate(lengths):
        row = Row()
        row.read([5 + number] * length, 0, None, NO_BRANCH, NO_BRANCH)
        row.learn(length - 1, 7, (), 0.0, 0.0, 1.0 + number)
        rows.append(row)
    found = []
    for gradient in (whole, in_halves):
        loss = gradient(model, rows)
        found.append((loss, torch.cat([p.grad.flatten() for p in model.parameters()])))
    (loss, expected), (halved, summed) = found
    assert halved == pytest.approx(loss, rel=1e-5)
    assert torch.allclose(summed, expected, rtol=1e-3, atol=1e-5 * float(expected.abs().max()))
    assert abs(sum(len(r.ids) for r in halves(rows)[0]) - sum(len(r.ids) for r in halves(rows)[1])) <= max(
        lengths
    )


@pytest.fixture(params=["DEFAULT", "AVX2", "AVX512"])
def narrow(request, monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: request.param)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)


def after_two_steps(shape: tuple[int, int]) -> torch.Tensor:
    """A matrix after two steps of Muon, which multiplies in bfloat16."""
    numbers = torch.Generator().manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(shape, generator=numbers))
    muon = torch.optim.Muon([weight], lr=0.1)
    for _ in range(2):
        weight.grad = torch.randn(shape, generator=numbers)
        muon.step()
    return weight.detach()


@pytest.mark.parametrize("shape", [(8, 8), (16, 64), (64, 16)])
def test_a_step_of_muon_is_torchs_up_to_the_rounding_of_bfloat16(narrow, shape):
    expected = after_two_steps(shape)
    with wide_products():
        found = after_two_steps(shape)
    # Steps of lr 0.1 times entries below 1, with the 8 bits of bfloat16 in each of 15 products.
    assert (found - expected).abs().max() < 0.1 * 2**-5


class Formats(TorchDispatchMode):
    """Notes the number formats of the products that are really computed."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[torch.dtype] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default):
            self.found.add(args[-1].dtype)
        return func(*args, **(kwargs or {}))


def test_a_bootstrap_multiplies_nothing_in_bfloat16_on_such_a_processor(narrow):
    with Formats() as own:
        after_two_steps((8, 8))
    assert torch.bfloat16 in own.found
    once = SupervisedConfig(episodes=1, steps=1, batch=1, lr=1e-3)
    row = Row()
    row.read([1, 2, 3], 0, None, NO_BRANCH, NO_BRANCH)
    row.learn(1, 3, (), 0.0, 0.0, 1.0)
    with Formats() as ours:
        fit(fresh(0), [[row]], once, 0, lambda *_: None)
    assert ours.found == {torch.float32}


def test_each_product_is_the_exact_one_rounded_once(narrow):
    a, b, c = (torch.randn(5, 5).bfloat16() for _ in range(3))
    with wide_products():
        found = a @ b, torch.matmul(a, b), torch.addmm(a, b, c, beta=2.0, alpha=0.5)
    exact = a.double() @ b.double()
    for product, value in zip(
        found, (exact, exact, 2 * a.double() + 0.5 * (b.double() @ c.double())), strict=True
    ):
        assert product.dtype == torch.bfloat16
        assert ((product.double() - value).abs() <= 2**-8 * value.abs() + 1e-6).all()


def test_other_formats_and_operations_are_as_they_were(narrow):
    a = torch.randn(5, 5)
    narrow_a = a.bfloat16()
    expected = a @ a, narrow_a + narrow_a, narrow_a.sum()
    with wide_products():
        found = a @ a, narrow_a + narrow_a, narrow_a.sum()
    assert all(torch.equal(x, y) and x.dtype == y.dtype for x, y in zip(found, expected, strict=True))


def test_a_processor_that_has_the_instructions_uses_them(monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    expected = after_two_steps((16, 64))
    with wide_products():
        assert torch.equal(after_two_steps((16, 64)), expected)
