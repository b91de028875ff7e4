"""Sums of an update in one order, so that the same update gives the same bits on a GPU too.

Some CUDA kernels add with atomic operations, in whatever order their threads come: the backward passes of attention,
of an embedding and of a gather among them. PyTorch has others, which it takes where it is told to. A forward pass needs
none of them: https://docs.pytorch.org/docs/stable/notes/randomness.html.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
"""What PyTorch wants set beside: with several streams cuBLAS may otherwise choose another way at each start."""


@contextmanager
def fixed_order(device: torch.device) -> Iterator[None]:
    """Within it, what is computed on a CUDA device is added in a fixed order. Nothing changes on other devices.

    An operation without such a kernel raises `RuntimeError`: better than a run that nobody can repeat. The setting of
    before is put back, because other libraries of the process, such as vLLM, use operations that have none.
    """
    if device.type != "cuda":
        yield
        return
    os.environ.setdefault(WORKSPACE, ":4096:8")
    before = torch.get_deterministic_debug_mode()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)
