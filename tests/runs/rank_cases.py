"""Two processes as torchrun starts them, forked from a server that has imported everything.

Processes of torchrun itself are in tests/runs/test_rank_death.py, and in slow tests of test_golden_runs.py.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch.multiprocessing import start_processes
from torch.multiprocessing.spawn import ProcessContext

from rlanything.cli import main


def preload() -> None:
    """What the server of forks imports when it starts."""
    multiprocessing.set_forkserver_preload(["rlanything.learn.sharding", "rlanything.runs.seedrun", "pytest"])


def two_ranks(folder: Path, function: Callable[..., None], *arguments: Any, nodes: int = 1) -> None:
    """Call a function in two processes that work in `folder`, as the two of one node, or as one of each of two nodes.

    To import Lightning takes longer than what the function does. Raises what the function raised."""
    wait_for(start_ranks(folder, function, *arguments, nodes=nodes))


def wait_for(ranks: ProcessContext) -> None:
    """Return when both have ended. Raises what one of them raised, or that it was killed."""
    while not ranks.join():
        pass


def train(arm: str) -> None:
    """What each process of `rlanything train` does in its project."""
    assert main(["train", "--arm", arm]) == 0


def start_ranks(
    folder: Path, function: Callable[..., None], *arguments: Any, nodes: int = 1
) -> ProcessContext:
    """The two processes of `two_ranks`, which have begun."""
    preload()
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    words = port, nodes, folder, dict(os.environ), function, arguments
    return start_processes(_rank, words, nprocs=2, join=False, start_method="forkserver")


def _rank(
    rank: int,
    port: int,
    nodes: int,
    folder: Path,
    environment: dict[str, str],
    function: Callable[..., None],
    arguments: Any,
) -> None:
    here = 2 // nodes
    place = {"RANK": rank, "LOCAL_RANK": rank % here, "GROUP_RANK": rank // here}
    place |= {"WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": here}
    place |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": folder.name}
    os.environ.clear()  # the server of forks has that of the test which started it
    os.environ |= environment | {name: str(value) for name, value in place.items()}
    os.chdir(folder)
    function(*arguments)
