"""Memory and speed of devices: accelerators by their data sheets, this machine's CPU by a measurement."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from rlanything.core.errors import ConfigError, unknown

GB = 10**9
CPU = "cpu"
AS_STATED = 0.15
"""How far the memory that PyTorch sees may be from the data sheet's, as a share: cards of one name differ in it."""


@dataclass(frozen=True)
class Device:
    """One device. Its peak rates are for dense matrices, without sparsity."""

    name: str
    memory: int
    """Bytes."""
    half_flops: float
    """Operations a second in bfloat16."""
    full_flops: float
    """Operations a second in float32 (PyTorch does not use TF32 unless it is told to)."""
    bandwidth: float
    """Bytes a second from its memory."""
    source: str
    of_flops: float = 0.4
    """Assumed share of the peak operations that a program reaches; 1 for a measured device."""
    of_bandwidth: float = 0.6
    """Assumed share of the peak bandwidth that a program reaches; 1 for a measured device."""


DEVICES = (
    Device("H200", 141 * GB, 989e12, 67e12, 4.8e12, "NVIDIA H200 data sheet, SXM"),
    Device("H100", 80 * GB, 989e12, 67e12, 3.35e12, "NVIDIA H100 data sheet, SXM"),
    Device("A100-80GB", 80 * GB, 312e12, 19.5e12, 2.039e12, "NVIDIA A100 data sheet, SXM 80GB"),
    Device(
        "RTX4090",
        24 * GB,
        165.2e12,
        82.6e12,
        1.008e12,
        "NVIDIA Ada architecture white paper, GeForce RTX 4090",
    ),
    Device(
        "L4", 24 * GB, 121e12, 30.3e12, 0.3e12, "NVIDIA L4 data sheet (half of its figures with sparsity)"
    ),
)


def device(name: str) -> Device:
    """The device called `name`; `cpu` is this machine. Raises `ConfigError` with the nearest name."""
    if name == CPU:
        return this_cpu()
    by_name = {known.name.lower(): known for known in DEVICES}
    if name.lower() not in by_name:
        raise ConfigError(f"--device {name!r}: {unknown(name, [CPU, *(known.name for known in DEVICES)])}")
    return by_name[name.lower()]


def of_this_machine() -> Device | None:
    """The device in `DEVICES` that this machine's first accelerator is, by its name and its memory in PyTorch.

    None if it is unknown, as an A100 of 40 GB is, an L40S, or a part of an H100.
    """
    import torch

    if not torch.cuda.is_available():
        return None
    name = torch.cuda.get_device_name(0).replace(" ", "").replace("GeForce", "")
    memory = torch.cuda.get_device_properties(0).total_memory
    return next((known for known in DEVICES if _is(known, name, memory)), None)


def _is(known: Device, name: str, memory: int) -> bool:
    return known.name.partition("-")[0] in name and abs(memory / known.memory - 1) <= AS_STATED


def this_cpu() -> Device:
    """This machine's CPU with one thread, as in every stage. Short matrix products and sums measure its speed."""
    import psutil
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        wide = torch.ones(768, 768)
        half, long = wide.bfloat16(), torch.ones(1 << 23)
        products = 2 * 768**3
        return Device(
            CPU,
            psutil.virtual_memory().total,
            products / _seconds(lambda: half @ half),
            products / _seconds(lambda: wide @ wide),
            long.nbytes / _seconds(long.sum),
            "measured on this machine, one thread",
            of_flops=1.0,
            of_bandwidth=1.0,
        )
    finally:
        torch.set_num_threads(threads)


def _seconds(work: Callable[[], object]) -> float:
    """Seconds of the fastest of four calls."""
    best = float("inf")
    for _ in range(4):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best
