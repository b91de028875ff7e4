"""What the numbers were measured on, and how: CPU seconds, progress lines."""

from __future__ import annotations

import os
import platform
import sys
import time
from typing import Any

import psutil
import torch

from rlanything.runs.machine import cpu_model

Measured = dict[str, Any]
"""A part of bench.json."""


def machine() -> Measured:
    """The machine, its load, and the libraries that count."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
    }


def cpu_seconds() -> float:
    """CPU time of this process and of its descendants that still run."""
    children = [child.cpu_times() for child in psutil.Process().children(recursive=True)]
    return time.process_time() + sum(times.user + times.system for times in children)


def say(text: str) -> None:
    """A line of progress."""
    print(f"bench: {text}", file=sys.stderr, flush=True)
