"""What the processes of a run use of this machine: cores, memory, disk, and GPUs where nvidia-smi knows of any."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

LITTLE_DISK = 2**30
"""Bytes free below which a run is likely to end for it: an iteration of a small checkpoint takes hundreds of MB."""
LITTLE_MEMORY = 0.05
"""Share of the memory that is left when the system begins to kill."""
PATIENCE_S = 2.0
_QUERY = "index,name,utilization.gpu,memory.used,memory.total"


@dataclass(frozen=True)
class Gpu:
    """One GPU. busy: share of the time, None where it does not say; memory in MiB."""

    index: int
    name: str
    busy: float | None
    used: float
    total: float


@dataclass(frozen=True)
class Use:
    """processes: of the run, here. cpu: seconds so far, of all of them. memory: their bytes, shared ones counted twice.

    busy: cores used since the look before, None at the first one. elsewhere: hosts where other processes of it run.
    """

    processes: int
    cpu: float
    memory: int
    memory_free: int
    memory_total: int
    disk_free: int
    gpus: tuple[Gpu, ...] = ()
    elsewhere: tuple[str, ...] = ()
    busy: float | None = None


def use(pids: Iterable[int], root: Path, elsewhere: Iterable[str] = ()) -> Use:
    """What these processes and those that they started use now."""
    count, cpu, memory = 0, 0.0, 0
    for process in _all(pids):
        with suppress(psutil.Error):
            times, held = process.cpu_times(), process.memory_info().rss
            count, cpu, memory = count + 1, cpu + times.user + times.system, memory + held
    system = psutil.virtual_memory()
    free = 0
    with suppress(OSError):
        free = shutil.disk_usage(root).free
    hosts = tuple(sorted(set(elsewhere)))
    return Use(count, cpu, memory, system.available, system.total, free, gpus(), hosts)


def _all(pids: Iterable[int]) -> Iterable[psutil.Process]:
    """The processes and all that they started, each once."""
    found: dict[int, psutil.Process] = {}
    for pid in pids:
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            found |= {one.pid: one for one in (process, *process.children(recursive=True))}
    return found.values()


def gpus() -> tuple[Gpu, ...]:
    """The GPUs of this machine; none where there is no nvidia-smi, or it does not answer."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    command = [program, f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return parsed(done.stdout)


def parsed(text: str) -> tuple[Gpu, ...]:
    """The GPUs in nvidia-smi's table. Lines that are none are left out."""
    found = []
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        with suppress(ValueError):
            index, name, busy, used, total = row
            share = float(busy) / 100 if busy.replace(".", "", 1).isdecimal() else None
            found.append(Gpu(int(index), name, share, float(used), float(total)))
    return tuple(found)
