"""What products in bfloat16 cost the bootstrap on this processor: `python -m benchmarks.trainers.products`.

Printed are steps of PyTorch's Muon on one matrix, in milliseconds: with PyTorch's own products, and as the bootstrap
makes them (`rlanything/learn/supervised/wide_products.py`). Both are measured in turns. Where the processor has
instructions for such products, both are the same.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from statistics import median

import torch
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.machine import machine
from rlanything.learn.supervised.wide_products import wide_products

SHAPES = ((128, 128), (128, 512), (256, 1024))
"""Of matrices: the hidden size, and that of the feed-forward."""
STEPS, ROUNDS = 5, 5


def measure(shape: tuple[int, int], steps: int = STEPS, rounds: int = ROUNDS) -> tuple[float, float]:
    """Milliseconds of a step with PyTorch's products, and with the bootstrap's: medians over the rounds."""
    found: dict[Callable[[], AbstractContextManager[object]], list[float]] = {
        nullcontext: [],
        wide_products: [],
    }
    for _ in range(rounds):
        for products, times in found.items():
            weight = torch.nn.Parameter(torch.randn(shape))
            muon = torch.optim.Muon([weight], lr=0.01)
            with products():
                start = time.perf_counter()
                for _ in range(steps):
                    weight.grad = torch.randn(shape)
                    muon.step()
                times.append(1000 * (time.perf_counter() - start) / steps)
    own, ours = (median(times) for times in found.values())
    return own, ours


def main(argv: Sequence[str] | None = None) -> None:
    """Print a row for each matrix."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.trainers.products", description=__doc__.split("\n")[0]
    )
    parser.parse_args(argv)
    torch.set_num_threads(1)
    made = Table("matrix", "PyTorch, ms", "bootstrap, ms", "ratio", box=box.ASCII)
    for shape in SHAPES:
        own, ours = measure(shape)
        made.add_row(f"{shape[0]} x {shape[1]}", f"{own:.2f}", f"{ours:.2f}", f"{own / ours:.1f}")
    console = Console(width=110)
    console.print(made)
    instructions = torch.backends.cpu.get_cpu_capability()
    console.print({**machine(), "instructions": instructions}, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
