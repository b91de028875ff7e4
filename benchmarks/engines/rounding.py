"""What is left of LoRA's product where it is computed in bfloat16: `python -m benchmarks.engines.rounding`.

`merged` adds the product to the frozen weights and rounds the sums, as an engine with one matrix has them. `apart`
rounds the two factors, as an engine with LoRA's weights beside the frozen ones has them. Printed is the part of the
product that is left, and the error of its outputs. One random matrix stands for a model: a frozen weight is normal,
with the deviation that transformers gives a new one. LoRA's A has its first values, and B is where AdamW has moved it
in so many steps of one direction.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from rich import box
from rich.console import Console
from rich.table import Table
from torch import Tensor

from benchmarks.machine import machine
from rlanything.config import LoraConfig

WIDTH = 1536
"""Of Qwen2.5-1.5B."""
DEVIATION = 0.02
"""`initializer_range` of Qwen2's configuration."""
RATE = 1e-5
"""The learning rate of scale=single-gpu."""
STEPS = (1, 3, 10, 30, 100, 300)
INPUTS = 64


@dataclass(frozen=True)
class Left:
    """kept: how much of the product is left in its own direction, 1 is all. error: of its outputs, relative."""

    kept: float
    error: float


def measure(steps: int, seed: int = 0) -> dict[str, Left]:
    """`merged` and `apart` -> what is left after so many steps."""
    drawn = torch.Generator().manual_seed(seed)
    lora = LoraConfig()
    weights = (torch.randn(WIDTH, WIDTH, generator=drawn) * DEVIATION).bfloat16().float()
    a = torch.empty(lora.rank, WIDTH)
    torch.nn.init.kaiming_uniform_(a, a=math.sqrt(5), generator=drawn)
    b = torch.randn(WIDTH, lora.rank, generator=drawn).sign() * steps * RATE
    scale = lora.alpha / lora.rank
    product = scale * b @ a
    found = {
        "merged": _rounded(weights + product) - weights,
        "apart": scale * _rounded(b) @ _rounded(a),
    }
    inputs = torch.randn(INPUTS, WIDTH, generator=drawn)
    return {name: _left(product, left, inputs) for name, left in found.items()}


def _rounded(values: Tensor) -> Tensor:
    return values.bfloat16().float()


def _left(product: Tensor, left: Tensor, inputs: Tensor) -> Left:
    wanted, got = inputs @ product.T, inputs @ left.T
    kept = (left * product).sum() / product.square().sum()
    return Left(float(kept), float((got - wanted).norm() / wanted.norm()))


def main(argv: Sequence[str] | None = None) -> None:
    """Print a row for each number of steps."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.engines.rounding", description=__doc__.split("\n")[0]
    )
    parser.parse_args(argv)
    torch.set_num_threads(1)
    names = [f"{way}: {what}" for way in ("merged", "apart") for what in ("kept", "error of outputs")]
    made = Table("steps of 1e-5", *names, box=box.ASCII)
    for steps in STEPS:
        found = measure(steps)
        numbers = [f"{number:.3f}" for way in ("merged", "apart") for number in _numbers(found[way])]
        made.add_row(str(steps), *numbers)
    console = Console(width=110)
    console.print(made)
    console.print(machine(), highlight=False, soft_wrap=True)


def _numbers(left: Left) -> tuple[float, float]:
    return left.kept, left.error


if __name__ == "__main__":
    main()
