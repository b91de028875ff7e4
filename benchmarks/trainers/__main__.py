"""Our engines and trainer beside TRL's GRPOTrainer, with equal counts: `python -m benchmarks.trainers`.

The sides alternate in one process on the CPU. Printed are tokens sampled and rows trained a second, seconds of an
iteration and their ratio to TRL's, what each side did, and what is not equal.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import partial
from importlib import metadata
from pathlib import Path

from rich.console import Console
from transformers.utils import logging

from benchmarks.engines.measure import SIZES
from benchmarks.machine import machine, say
from benchmarks.trainers import ours, table
from benchmarks.trainers.turns import Side, alternate
from benchmarks.trainers.work import Work, write_model

MISSING = "TRL is not installed: make exports, or pip install -e '.[exports]'; nothing was measured"
HELP = {
    "prompts": "prompts of an iteration",
    "group": "replies to each prompt",
    "prompt": "tokens of the shortest prompts",
    "spread": "how many more the longest prompts may have",
    "reply": "tokens of every reply",
    "updates": "optimizer steps of an iteration",
    "rows": "rows of a pass of TRL's updates; ours have at most the tokens of N rows of the greatest length",
    "repeats": "iterations of each side that are counted",
    "beta": "weight of the KL term; above 0 both sides compare with the first weights",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the sizes and numbers of threads that are named; returns the exit code."""
    parser = _parser()
    args = parser.parse_args(argv)
    if installed("trl") is None:
        parser.error(MISSING)
    if bad := [size for size in args.sizes if size not in SIZES]:
        parser.error(f"{bad[0]}: must be of {', '.join(SIZES)}")
    if min(args.threads) < 1:
        parser.error(f"--threads {min(args.threads)}: must be at least 1")
    given = {field.name: getattr(args, field.name) for field in fields(Work) if field.name != "size"}
    works = [Work(size, **given) for size in args.sizes]
    if problem := works[0].problem():
        parser.error(problem)
    started, load, console = time.monotonic(), round(os.getloadavg()[0], 2), Console(width=140)
    for work in works:
        for threads in args.threads:
            with _quiet():
                found = measure(work, args.engines, threads)
            if problem := table.unequal(found):
                print(f"bench: {problem}", file=sys.stderr)
                return 1
            console.print(table.speed(work, threads, found))
            if threads == args.threads[-1]:
                console.print(table.done(found))
    versions = {name: installed(name) for name in ("trl", "transformers", "lightning")}
    here = {**machine(), "threads": args.threads, "load before": load, **versions}
    for line in (*table.sentences(works[0]), f"{here}; {time.monotonic() - started:.0f} s in all"):
        console.print(line, highlight=False, soft_wrap=True, markup=False)
    return 0


def measure(work: Work, engines: Sequence[str], threads: int) -> table.Found:
    """Our side with each of `engines`, and TRL. threads: of torch."""
    from benchmarks.trainers import grpo  # needs TRL

    say(f"{work.size}, {threads} threads: {', '.join(engines)} and TRL, {work.iterations} iterations each")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_model(work.size, folder)
        sides: dict[str, Side] = {name: partial(ours.train, work, folder, name) for name in engines}
        return alternate({**sides, table.TRL: partial(grpo.train, work, folder)}, threads)


def installed(package: str) -> str | None:
    """The version of a package; None: it is not installed."""
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trainers", description=__doc__.split("\n")[0])
    parser.add_argument(
        "sizes", nargs="*", default=["0.4M"], metavar="SIZE", help=f"of {', '.join(SIZES)}; default: 0.4M"
    )
    parser.add_argument(
        "--engines",
        nargs="+",
        choices=ours.ENGINES,
        default=list(ours.ENGINES),
        help="of our side; default: both",
    )
    two = [1, 2] if (os.cpu_count() or 1) > 1 else [1]
    parser.add_argument("--threads", nargs="+", type=int, default=two, help="of torch; default: %(default)s")
    for field in fields(Work):
        if field.name in HELP:
            kind = float if field.name == "beta" else int
            text = f"{HELP[field.name]}; default: {field.default}"
            parser.add_argument(f"--{field.name}", type=kind, default=field.default, metavar="N", help=text)
    parser.add_argument(
        "--recompute",
        action="store_true",
        help="ours computes the replies' log-probs again, as TRL may have to",
    )
    return parser


@contextmanager
def _quiet() -> Iterator[None]:
    """Within it the libraries print nothing, neither bars nor warnings."""
    bars, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


if __name__ == "__main__":
    sys.exit(main())
