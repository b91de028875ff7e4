"""The uniform numbers of a seed, and the draw of a token with one of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlanything.engines.sampling import draw, uniforms

SEEDS = st.integers(0, 2**63 - 1)


@given(st.lists(SEEDS, min_size=1, max_size=8), st.integers(1, 40))
def test_a_uniform_depends_on_its_seed_and_index_only(seeds, count):
    together = uniforms(seeds, count)
    assert together.shape == (len(seeds), count)
    assert ((together >= 0) & (together < 1)).all()
    for row, seed in zip(together, seeds, strict=True):
        assert (uniforms([seed], count + 3)[0, :count] == row).all()


def test_uniforms_are_uniform_and_unrelated():
    numbers = uniforms(range(2000), 20)
    counts = np.histogram(numbers, bins=50, range=(0, 1))[0]
    expected = numbers.size / 50
    assert ((counts - expected) ** 2 / expected).sum() < 90  # chi-square, 49 degrees of freedom: p < 4e-4
    assert abs(np.corrcoef(numbers[:-1].ravel(), numbers[1:].ravel())[0, 1]) < 0.03
    assert abs(np.corrcoef(numbers[:, :-1].ravel(), numbers[:, 1:].ravel())[0, 1]) < 0.03


def test_uniforms_are_pinned():
    """A change of these numbers would change every recorded run."""
    pinned = [[0.652448486374, 0.701212109522], [0.368189515652, 0.943564230865]]
    assert uniforms([0, 1], 2).round(12).tolist() == pinned


def test_a_seed_must_be_a_natural_number():
    with pytest.raises(OverflowError):
        uniforms([-1], 1)


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=12), st.sampled_from([0.0, 0.3, 1.0, 4.0]))
def test_extreme_uniforms_stay_inside(logits, temperature):
    row = torch.tensor([[float("-inf"), *logits, float("-inf")]] * 3)
    ends = torch.tensor([0.0, 0.5, 1 - 2.0**-50], dtype=torch.float64)
    chosen, logprobs = draw(row, ends, torch.full((3,), temperature))
    assert ((chosen > 0) & (chosen <= len(logits))).all()
    torch.testing.assert_close(logprobs, row.log_softmax(-1).gather(1, chosen[:, None])[:, 0])
