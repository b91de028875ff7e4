"""One of two processes, as torchrun starts them: samples its share with servers of its own, before and after an update.

Arguments: a folder for results and weights, the program of servers or '' for vLLM's, and addresses.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import engine_cases as cases
import torch
import torch.distributed as processes
from fake_vllm import FAULTS

from rlanything.core.types import Completion, Request
from rlanything.engines.vllm import support
from rlanything.engines.vllm.served.engine import VllmServers
from rlanything.loop.share import shared

REQUESTS = [Request((20, 30, seed + 40), seed, 8, session=f"{seed}") for seed in range(24)]
UPDATE = 1.03
"""What all weights are multiplied with."""


def results(found: list[Completion]) -> list[list[object]]:
    """What can be written."""
    return [[list(c.ids), list(c.logprobs), c.version] for c in found]


def with_faults(faults: Path, *arguments: Any) -> None:
    """`main` where a fake finds the folder of its faults."""
    os.environ[FAULTS] = str(faults)
    main(*arguments)


def main(folder: Path, program: str, addresses: list[str]) -> None:
    torch.set_num_threads(1)
    processes.init_process_group("gloo")
    model, tolerance = cases.qwen2(), None
    if program:
        support.version = lambda: support.VERSION
        tolerance = 1e9
    engine = VllmServers(
        model,
        cases.tokenizer(),
        cache_gib=cases.VLLM_GIB,
        tolerance=tolerance,
        folder=str(folder),
        addresses=addresses,
    )
    if program:
        engine._program = [sys.executable, program]
    found = []
    try:
        for version in range(2):
            if version:
                with torch.no_grad():
                    for parameter in model.parameters():
                        parameter.mul_(UPDATE)
            engine.sync(version)
            found.append(results(shared(REQUESTS, engine.generate)))
            processes.barrier()
    finally:
        engine.close()
    (folder / f"{processes.get_rank()}.json").write_text(json.dumps(found))
    processes.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
