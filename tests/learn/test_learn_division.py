"""Gradients and statistics of an update do not depend on how its rows are cut into micro-batches and processes.

Equal to rounding, not to the last bit: a gradient is a sum over tokens, and each division adds them up in another
order. The same division gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learn_cases import dialogue, judged, lesson, qwen2, recorded, verdicts
from torch import Tensor
from trainer_cases import Stage

from rlanything.learn.losses import pack, surrogate, target_logprobs
from rlanything.learn.packing import Row, micro_batches, minibatches, policy_rows, reward_rows

ROUNDING = 1e-5
SEEDS = st.lists(st.integers(0, 10**6), min_size=1, max_size=6, unique=True)
TOKENS = st.sampled_from([1, 30, 60, 100, 10**6])
KINDS = st.sampled_from(["policy", "reward"])


@pytest.fixture(scope="module")
def model():
    return qwen2(1)


def rows_of(kind: str, seeds: Sequence[int], model) -> list[Row]:
    """One minibatch, with log-probs a little off the model's own so that ratios and the KL term are not trivial."""
    units = [
        policy_rows(lesson(dialogue(s)), "step")
        if kind == "policy"
        else reward_rows(verdicts(judged(s)), "step")
        for s in seeds
    ]
    (rows,) = minibatches(units, 1, 0, 0, kind)
    return shifted(rows, model)


def shifted(rows: list[Row], model) -> list[Row]:
    """The rows with log-probs a little off the model's own."""
    for row in recorded(rows, model):
        row.old = [x + 0.1 for x in row.old]
    return rows


def learned(model, groups: Sequence[Sequence[Row]]) -> tuple[list[Tensor], dict[str, float]]:
    """Gradients and statistics of the groups, one after the other."""
    model.zero_grad()
    sums: dict[str, float] = {}
    for group in groups:
        batch = pack(group)
        loss, stats = surrogate(target_logprobs(model, batch), batch, 0.2, 0.01)
        loss.backward()
        sums = {name: sums.get(name, 0.0) + float(value) for name, value in stats.items()}
    return [p.grad.clone() for p in model.parameters() if p.grad is not None], sums


def assert_close(one, other) -> None:
    for left, right in zip(one[0], other[0], strict=True):
        torch.testing.assert_close(left, right, rtol=ROUNDING, atol=ROUNDING)
    assert one[1] == pytest.approx(other[1], rel=ROUNDING, abs=ROUNDING)


@given(SEEDS, TOKENS, KINDS)
def test_every_row_is_in_one_micro_batch_that_keeps_to_the_limit(model, seeds, tokens, kind):
    rows = (
        rows_of(kind, seeds, model)
        if kind == "reward"
        else [r for s in seeds for r in policy_rows(lesson(dialogue(s)), "step")]
    )
    groups = micro_batches(rows, tokens)
    assert sorted(map(id, rows)) == sorted(id(row) for group in groups for row in group)
    for group in groups:
        assert group
        assert len(group) == 1 or len(group) * max(len(row.ids) for row in group) <= tokens


@settings(max_examples=12, deadline=None)
@given(SEEDS, TOKENS, KINDS, st.integers(1, 4))
def test_micro_batches_and_processes_change_gradients_and_statistics_by_rounding_alone(
    model, seeds, tokens, kind, world
):
    rows = rows_of(kind, seeds, model)
    whole = learned(model, [rows])
    groups = micro_batches(rows, tokens)
    assert_close(learned(model, groups), whole)
    shares = [learned(model, groups[rank::world]) for rank in range(world) if groups[rank::world]]
    gradients = [sum(parts) for parts in zip(*(share[0] for share in shares), strict=True)]
    sums = {name: sum(share[1][name] for share in shares) for name in whole[1]}
    assert_close((gradients, sums), whole)


@settings(max_examples=12, deadline=None)
@given(SEEDS, TOKENS, st.integers(1, 8), st.integers(1, 2))
def test_cutting_the_replies_to_a_question_changes_gradients_and_statistics_by_rounding_alone(
    model, seeds, most, m, steps
):
    lessons = [verdicts(judged(s, steps=steps, m=m)) for s in seeds]
    whole, cut = (
        shifted(minibatches([reward_rows(x, "step", limit) for x in lessons], 1, 0, 0, "reward")[0], model)
        for limit in (None, most)
    )
    assert_close(learned(model, micro_batches(cut, most)), learned(model, [whole]))


@settings(max_examples=6, deadline=None)
@given(SEEDS, TOKENS, KINDS)
def test_the_same_micro_batches_give_the_same_bits(model, seeds, tokens, kind):
    groups = micro_batches(rows_of(kind, seeds, model), tokens)
    one, other = learned(model, groups), learned(model, groups)
    assert one[1] == other[1]
    assert all(torch.equal(left, right) for left, right in zip(one[0], other[0], strict=True))


@settings(max_examples=6, deadline=None)
@given(SEEDS, KINDS, st.randoms(use_true_random=False))
def test_the_order_of_rows_in_a_minibatch_changes_nothing_but_rounding(model, seeds, kind, rng):
    rows = rows_of(kind, seeds, model)
    assert_close(learned(model, micro_batches(rng.sample(rows, len(rows)), 60)), learned(model, [rows]))


def test_two_trainings_with_the_same_division_have_the_same_bits_in_weights_and_statistics():
    one, other = (Stage(micro_tokens=60).fit(2) for _ in range(2))
    assert one.totals == other.totals
    weights = one.weights(), other.weights()
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
