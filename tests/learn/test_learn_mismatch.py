"""What the differences between sampler and trainer say, and which tokens they take out of the loss."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from learn_cases import FAST, dialogue, lesson, row_logprobs
from trainer_cases import Stage, furthest, quiet

from rlanything.learn.mismatch import correction, mismatch
from rlanything.learn.packing import policy_rows

RECOMPUTED = FAST.model_copy(update={"importance": "recomputed"})
DRIFT = st.lists(st.floats(-5, 5), min_size=1, max_size=50)


def test_no_difference_at_all_is_a_ratio_of_one_and_nothing_cut():
    ones = {f"ratio_{name}": 1.0 for name in ("p01", "p50", "p99")}
    nothing = {"mismatch_kl": 0.0, "mismatch_max": 0.0, "ratio_capped": 0.0}
    assert mismatch([0.0] * 5, 2.0) == {**nothing, **ones}
    assert mismatch([], 2.0) == {}


def test_quantiles_and_the_share_that_is_cut():
    found = mismatch([math.log(ratio) for ratio in range(1, 102)], 50.5)
    assert (found["ratio_p01"], found["ratio_p50"], found["ratio_p99"]) == pytest.approx((2, 51, 100))
    assert found["ratio_capped"] == 51 / 101


@given(DRIFT, st.floats(0.1, 10))
def test_quantiles_are_ordered_ratios_and_the_order_of_targets_does_not_matter(drift, cap):
    assume(all(abs(math.exp(d) - cap) > 1e-9 for d in drift))
    found = mismatch(drift, cap)
    assert found["ratio_p01"] <= found["ratio_p50"] <= found["ratio_p99"]
    assert found["ratio_capped"] == sum(math.exp(d) > cap for d in drift) / len(drift)
    again = mismatch(drift[::-1], cap)
    assert {k: v for k, v in again.items() if k != "mismatch_kl"} == {
        k: v for k, v in found.items() if k != "mismatch_kl"
    }
    assert found["mismatch_kl"] >= 0


@given(DRIFT, st.floats(0.1, 10), st.floats(0.01, 0.99), st.floats(1.01, 20))
def test_a_weight_is_its_ratio_up_to_the_cap_and_nothing_outside_of_the_mask(drift, cap, low, high):
    ratios = torch.tensor(drift, dtype=torch.float64).exp()
    factors = correction(ratios, cap, (low, high)).tolist()
    for ratio, factor in zip(ratios.tolist(), factors, strict=True):
        assert factor == (min(ratio, cap) if low <= ratio <= high else 0.0)
    found = mismatch(drift, cap, (low, high))
    assert found["ratio_masked"] == pytest.approx(factors.count(0.0) / len(factors))
    assert found == mismatch(drift, cap) | {"ratio_masked": found["ratio_masked"]}
    assert correction(ratios, cap, None).tolist() == [min(ratio, cap) for ratio in ratios.tolist()]


def test_tokens_with_ratios_outside_of_the_mask_teach_nothing():
    """Each row's first target was sampled with another probability, far above and below."""
    apart = Stage(RECOMPUTED.model_copy(update={"importance_mask": (0.5, 2.0)}))
    plain = Stage(RECOMPUTED)
    for stage in (apart, plain):
        stage.module._trainer = quiet(max_epochs=1)
        prepare = stage.module.prepare

        def moved(name, rows, prepare=prepare):
            for k, row in enumerate(rows):
                row.old[0] += 2.0 if k % 2 else -2.0
            return prepare(name, rows)

        stage.module.prepare = moved
    masked, capped = ([r for b in stage.collect() for g in b.policy for r in g] for stage in (apart, plain))
    targets = sum(len(row.target) for row in masked)
    for row, same in zip(masked, capped, strict=True):
        assert row.weight[0] == 0.0
        assert same.weight[0] > 0.0
        assert row.weight[1:] == same.weight[1:]
        assert row.old == same.old
    assert apart.prepared[0]["policy/ratio_masked"] == pytest.approx(len(masked) / targets)
    assert "policy/ratio_masked" not in plain.prepared[0]


def test_a_step_in_which_every_token_is_masked_moves_nothing():
    config = RECOMPUTED.model_copy(update={"importance_mask": (0.9, 1.1), "updates": 1})
    stage = Stage(config, skew=1.0)
    before = stage.weights()
    stage.fit(1)
    assert stage.totals[0]["policy/grad_norm"] == [0.0]
    assert furthest(before, stage.weights()) == 0.0


def test_without_a_reference_model_the_divergence_is_from_the_trainers_log_probs_and_not_from_the_samplers():
    """The sampler recorded -1 for each token, far from what the trainer computes."""
    stage = Stage(RECOMPUTED)
    stage.module._trainer = quiet(max_epochs=1)
    rows = policy_rows(lesson(dialogue(0)), "step")
    assert {x for row in rows for x in (*row.old, *row.reference)} == {-1.0}
    stage.module.prepare("policy", rows)
    for row in rows:
        assert row.reference == row.old == pytest.approx(row_logprobs(stage.policy, [row]).tolist(), abs=1e-5)


def test_ratios_that_are_the_bounds_are_neither_cut_nor_masked():
    ratios = torch.tensor([0.5, 2.0], dtype=torch.float64)
    assert correction(ratios, 2.0, (0.5, 2.0)).tolist() == [0.5, 2.0]
    found = mismatch([0.0], 1.0, (1.0, 1.0))
    assert (found["ratio_capped"], found["ratio_masked"]) == (0.0, 0.0)
