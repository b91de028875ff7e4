"""Sums in one order, so that the same update gives the same bits on a GPU too.

Some CUDA kernels add with atomic operations, in whatever order their threads come: the backward passes of attention, of
an embedding and of a gather among them. PyTorch has others, and takes them where it is told to:
https://docs.pytorch.org/docs/stable/notes/randomness.html.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def fixed_order(device: torch.device) -> Iterator[None]:
    """Within it, what is computed on a CUDA device is added in a fixed order. Nothing changes on other devices.

    An operation without such a kernel raises `RuntimeError`: better than a run that nobody can repeat. The draw of
    tokens is such an operation (`cumsum`), and the switch holds for every thread of the process. So it is set for the
    passes of a training alone, and nothing may sample on CUDA meanwhile. The setting of before is put back, because
    other libraries of the process, such as vLLM, use operations that have no such kernel.

    The passes that compute log-probs for an update must be within it too. It decides which kernel of attention is
    taken, and the ratio of an update is 1 only where both took the same.
    """
    if device.type != "cuda":
        yield
        return
    before = torch.get_deterministic_debug_mode()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)
