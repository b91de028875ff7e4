"""Products of matrices in bfloat16, on processors that have no instructions for them.

PyTorch's Muon multiplies in bfloat16. Where a processor cannot, PyTorch does it in another way. On an AMD EPYC with
AVX2 alone that is a plain loop: a step of Muon then took 9 to 19 times as long as with float32
(`python -m benchmarks.trainers.products`), and Muon most of the time of a bootstrap. On an Intel Xeon with AVX-512 but
without its instructions for bfloat16 a step took 2.3 to 3.1 times as long.
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
PARTLY = "AVX512"
"""Of the processors with these instructions, only some have products in bfloat16."""


def wide_products() -> AbstractContextManager[object]:
    """Within it, such a processor multiplies bfloat16 in float32 and rounds each result, as the instructions do.

    The results differ from PyTorch's own by the order of the sums: by rounding of bfloat16. Nothing changes on other
    processors and on other devices.
    """
    return _Wide() if _narrow() else nullcontext()


def _narrow() -> bool:
    found = torch.backends.cpu.get_cpu_capability()
    # The private name is there in every version of torch that pyproject.toml allows.
    return found in NARROW or (found == PARTLY and not torch.cpu._is_avx512_bf16_supported())


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
