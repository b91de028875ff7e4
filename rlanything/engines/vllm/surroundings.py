"""What vLLM changes in the process that imports it, and how it is put back.

vLLM is made for processes of its own. Here it starts in the process of the trainer, whose random numbers, threads and
child processes must be those of a run with another engine.
"""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

INVARIANT = "VLLM_BATCH_INVARIANT"
"""Read while vLLM starts: whether its kernels give each request the same bits whatever the batch."""
VARIABLES = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # in this process
    "VLLM_USE_V2_MODEL_RUNNER": "0",  # on a GPU the newer one refuses logits processors of the form that CPUs have
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # threads stay those of the process
    INVARIANT: "0",  # it would replace kernels of the trainer too; servers have `engine.batch_invariant`
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
}
"""Environment variables that vLLM reads. Those that the user has set stay, but for `FORCED`."""
FORCED = (
    "VLLM_ENABLE_V1_MULTIPROCESSING",
    "VLLM_USE_V2_MODEL_RUNNER",
    "VLLM_CPU_OMP_THREADS_BIND",
    INVARIANT,
)
CACHE_SIZE = "VLLM_CPU_KVCACHE_SPACE"
"""A variable that overrides the configured size of the cache. It is removed."""
NO_COMPILER = "TORCHDYNAMO_DISABLE"
"""Read while vLLM is imported. Without it a CPU compiles the sampler, for about 20 seconds of the first call."""
EXACT = {"TRITON_F32_DEFAULT": "ieee"}
"""Read on a GPU whenever Triton compiles a kernel. Without it attention in float32 multiplies with the 10 bits of TF32,
and log-probs differ from the trainer's by more than rounding."""


@contextmanager
def restored(device: str) -> Iterator[None]:
    """Import and start vLLM within it. Afterwards, random generators, threads and environment are as before.

    Variables whose names begin with `VLLM_` stay, because vLLM reads them again. So do `EXACT` on a GPU, because
    kernels are compiled when they are first used. device: `cpu` or `cuda`.
    """
    if device == "cuda":
        for name, value in EXACT.items():
            os.environ.setdefault(name, value)
    before = dict(os.environ)
    numbers, python, threads = np.random.get_state(), random.getstate(), torch.set_num_threads
    os.environ.pop(CACHE_SIZE, None)
    for name, value in VARIABLES.items():
        os.environ[name] = value if name in FORCED else before.get(name, value)
    if device == "cpu":
        os.environ[NO_COMPILER] = "1"
    try:
        with torch.random.fork_rng(), _choices_of_torch(), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # vLLM's own, about names of torch
            yield
    finally:
        torch.set_num_threads = threads
        np.random.set_state(numbers)
        random.setstate(python)
        _restore(before)


@contextmanager
def _choices_of_torch() -> Iterator[None]:
    """Afterwards torch multiplies, convolves and attends as before. vLLM chooses for its whole process."""
    precision, cudnn = torch.get_float32_matmul_precision(), torch.backends.cuda.cudnn_sdp_enabled()
    tf32 = torch.backends.cudnn.allow_tf32
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(precision)
        torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cuda.enable_cudnn_sdp(cudnn)


def _restore(before: dict[str, str]) -> None:
    for name in os.environ.keys() - before.keys():
        if not name.startswith("VLLM_"):
            del os.environ[name]
    os.environ.update({name: value for name, value in before.items() if not name.startswith("VLLM_")})
