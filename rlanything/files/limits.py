"""Limits of a process that reads what may be anybody's: a child, forked and killed when it takes too long."""

from __future__ import annotations

import resource
import sys

import psutil


def limit_process(cpu_s: int, memory_mb: int) -> None:
    """Limit this process, for good: its CPU time, its memory beyond what it has, and no core dump.

    A limit that is lower already, of the shell or of a container, stays: only root may raise one.
    """
    _lower(resource.RLIMIT_CPU, cpu_s)
    if sys.platform == "linux":  # other systems do not enforce it
        _lower(resource.RLIMIT_AS, psutil.Process().memory_info().vms + (memory_mb << 20))
    _lower(resource.RLIMIT_CORE, 0)


def _lower(kind: int, most: int) -> None:
    limit = min([most, *(known for known in resource.getrlimit(kind) if known != resource.RLIM_INFINITY)])
    resource.setrlimit(kind, (limit, limit))
