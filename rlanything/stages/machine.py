"""What a command runs on: processor, memory, accelerators, and the versions of everything installed."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

SETTINGS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "ATEN_CPU_CAPABILITY",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_VISIBLE_DEVICES",
    "WORLD_SIZE",
)
"""Environment variables that can change what is computed; no others are recorded, since some hold secrets."""


def machine() -> dict[str, Any]:
    """The hardware, and what of it PyTorch uses."""
    import psutil
    import torch

    devices = range(torch.cuda.device_count())
    return {
        "system": platform.platform(),
        "python": platform.python_version(),
        "cpu": cpu_model(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "accelerators": [torch.cuda.get_device_name(device) for device in devices],
        "settings": {name: os.environ[name] for name in SETTINGS if name in os.environ},
    }


def packages() -> dict[str, str]:
    """Name -> version of every installed distribution."""
    return {str(d.metadata["Name"]): d.version for d in sorted(metadata.distributions(), key=_name)}


def cpu_model() -> str:
    """The processor's name, as Linux gives it or as Python knows it."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _name(distribution: metadata.Distribution) -> str:
    return str(distribution.metadata["Name"]).lower()
