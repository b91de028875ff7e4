"""The same work on every engine, at several model sizes: `python -m benchmarks.engines`.

Printed are CPU seconds, their ratio to the native engine's, and the share of completions with the native engine's ids.
An engine whose package is not installed is left out. Set OMP_NUM_THREADS=1. `--gpu` measures seconds on the clock on a
GPU, with a model of real size (`gpu`).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import torch
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.engines import gpu
from benchmarks.engines.measure import OPENINGS, SIZES, Results, measure
from benchmarks.machine import machine
from rlanything.core.errors import RLAnythingError
from rlanything.engines.placement import in_room


def table(size: str, results: Results) -> Table:
    """One row for each kind of work and engine."""
    made = Table("parameters", "work", "engine", "CPU s", "times native", "equal ids", box=box.ASCII)
    for kind, by_engine in results.items():
        native = by_engine["native"].best
        for name, one in by_engine.items():
            numbers = f"{one.best:.2f}", f"{one.best / native:.2f}", f"{one.equal:.1%}"
            made.add_row(size, kind, name, *numbers)
    return made


def main(argv: Sequence[str] | None = None) -> None:
    """Measure the models that are named, and print a table for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines", description=__doc__.split("\n")[0])
    parser.add_argument(
        "sizes", nargs="*", default=list(SIZES), metavar="SIZE", help=f"of {', '.join(SIZES)}"
    )
    parser.add_argument(
        "--engines", nargs="+", default=list(OPENINGS), choices=OPENINGS, help="beside the native one"
    )
    parser.add_argument("--gpu", action="store_true", help="a model of real size on this machine's GPU")
    parser.add_argument(
        "--checkpoint",
        default=gpu.CHECKPOINT,
        choices=gpu.checkpoints(),
        metavar="NAME",
        help="with --gpu: of experiments/model/sizes.json; default: %(default)s",
    )
    parser.add_argument(
        "--lora", action="store_true", help="with --gpu: vLLM with LoRA too, merged and apart"
    )
    args = parser.parse_args(argv)
    if args.lora and not args.gpu:
        parser.error("--lora: goes with --gpu; on a CPU: python -m benchmarks.engines.lora")
    if args.gpu and not torch.cuda.is_available():
        parser.error("--gpu: PyTorch finds no NVIDIA GPU here; nothing was measured")
    for size in args.sizes:
        if size not in SIZES:
            parser.error(f"{size}: must be of {', '.join(SIZES)}")
    torch.set_num_threads(1)
    started = time.monotonic()
    console = Console(width=100)
    if args.gpu:
        try:
            with in_room(f"{args.checkpoint}: the GPU has no room"):
                found = gpu.compare(args.checkpoint, lora=args.lora)
        except RLAnythingError as error:
            sys.exit(f"bench: {error}")
        console.print(gpu.table(args.checkpoint, found))
    for size in [] if args.gpu else args.sizes:
        console.print(table(size, measure(size, names=args.engines)))
    here = {**machine(), **({"gpu": torch.cuda.get_device_name()} if args.gpu else {})}
    console.print(f"{here}; {time.monotonic() - started:.0f} s in all", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
