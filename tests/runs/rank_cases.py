"""Two processes as torchrun starts them, forked from a server that has imported everything.

Processes of torchrun itself are in tests/golden/test_golden_runs.py and tests/runs/test_rank_death.py.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch.multiprocessing import start_processes


def preload() -> None:
    """What the server of forks imports when it starts."""
    multiprocessing.set_forkserver_preload(["rlanything.learn.sharding", "rlanything.runs.seedrun", "pytest"])


def two_ranks(folder: Path, function: Callable[..., None], *arguments: Any) -> None:
    """Call a function in two processes that work in `folder`, as the two of one node.

    To import Lightning takes longer than what the function does. Raises what the function raised."""
    preload()
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    start_processes(_rank, (port, folder, function, arguments), nprocs=2, start_method="forkserver")


def _rank(rank: int, port: int, folder: Path, function: Callable[..., None], arguments: Any) -> None:
    place = {"RANK": rank, "LOCAL_RANK": rank, "GROUP_RANK": 0, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2}
    place |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": folder.name}
    os.environ |= {name: str(value) for name, value in place.items()}
    os.chdir(folder)
    function(*arguments)
