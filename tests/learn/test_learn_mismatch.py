"""What the differences between sampler and trainer say."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from rlanything.learn.mismatch import correction, mismatch

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
