"""The mismatch of sampler and trainer is rounding alone in float32, and larger in bfloat16."""

from __future__ import annotations

import pytest

from benchmarks.precision import CASES, Mismatch, Workload, measure

TINY = Workload(prompts=6, prompt=20, reply=12, hidden=64, layers=3, spread=0.2)


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, bool], Mismatch]:
    return {case: measure(*case, TINY) for case in CASES}


def test_float32_agrees_up_to_rounding(found):
    assert found["32-true", False].largest < 1e-4
    assert found["32-true", False].clipped == 0.0


@pytest.mark.parametrize("case", [case for case in CASES if case[0] != "32-true"])
def test_bfloat16_does_not(found, case):
    seen = found[case]
    assert seen.tokens == 6 * 12
    assert seen.mean > 100 * found["32-true", False].mean
    assert seen.half <= seen.most <= seen.largest
    assert seen.low < 1.0 < seen.high
    assert seen.kl > 0.0


def test_the_trainers_autocast_brings_the_sampler_nearer_but_not_to_it(found):
    assert 0.0 < found["bf16-mixed", True].mean < found["bf16-mixed", False].mean
