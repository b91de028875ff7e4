"""Products in bfloat16 on a processor without instructions for them: the same up to rounding, and nothing else."""

from __future__ import annotations

import pytest
import torch

from rlanything.learn.wide_products import wide_products


@pytest.fixture(params=["DEFAULT", "AVX2"])
def narrow(request, monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: request.param)


def step(shape: tuple[int, int]) -> torch.Tensor:
    """A matrix after two steps of Muon."""
    numbers = torch.Generator().manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(shape, generator=numbers))
    muon = torch.optim.Muon([weight], lr=0.1)
    for _ in range(2):
        weight.grad = torch.randn(shape, generator=numbers)
        muon.step()
    return weight.detach()


@pytest.mark.parametrize("shape", [(8, 8), (16, 64), (64, 16)])
def test_a_step_of_muon_is_torchs_up_to_the_rounding_of_bfloat16(narrow, shape):
    expected = step(shape)
    with wide_products():
        found = step(shape)
    # Steps of lr 0.1 times entries below 1, with the 8 bits of bfloat16 in each of 15 products.
    assert (found - expected).abs().max() < 0.1 * 2**-5


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
    expected = step((16, 64))
    with wide_products():
        assert torch.equal(step((16, 64)), expected)
