"""The same work on every engine, at several model sizes: `python -m benchmarks.engines`.

Printed are CPU seconds, their ratio to the native engine's, and the share of completions with the native engine's ids.
An engine whose package is not installed is left out. Set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import torch
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.engines.measure import SIZES, Results, measure
from benchmarks.machine import machine


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
    args = parser.parse_args(argv)
    for size in args.sizes:
        if size not in SIZES:
            parser.error(f"{size}: must be of {', '.join(SIZES)}")
    torch.set_num_threads(1)
    started = time.monotonic()
    console = Console(width=100)
    for size in args.sizes:
        console.print(table(size, measure(size)))
    console.print(f"{machine()}; {time.monotonic() - started:.0f} s in all", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
