"""Products of matrices in bfloat16, on processors that have no instructions for them.

PyTorch's Muon multiplies in bfloat16. Where a processor cannot, PyTorch does it with a plain loop. On an AMD EPYC with
AVX2 alone a step of Muon then took 9 to 19 times as long as with float32 (`python -m benchmarks.trainers.products`),
and Muon most of the time of a bootstrap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

PRODUCTS = frozenset({Tensor.matmul, Tensor.__matmul__, torch.matmul, torch.addmm})
NARROW = frozenset({"DEFAULT", "AVX2"})
"""Instruction sets of x86 without products in bfloat16. Other processors say `DEFAULT` too, whatever they have."""


def wide_products() -> AbstractContextManager[object]:
    """Within it, such a processor multiplies bfloat16 in float32 and rounds each result, as the instructions do.

    The results differ from those of PyTorch's loop by the order of the sums: by rounding of bfloat16. Nothing changes
    on other processors and on other devices.
    """
    return _Wide() if torch.backends.cpu.get_cpu_capability() in NARROW else nullcontext()


class _Wide(TorchFunctionMode):
    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        if func in PRODUCTS and all(x.dtype == torch.bfloat16 and x.device.type == "cpu" for x in args):
            return func(*(x.float() for x in args), **named).bfloat16()
        return func(*args, **named)
