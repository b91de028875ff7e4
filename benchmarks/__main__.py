"""`python -m benchmarks`: measure every part on this machine, print a table, write bench.json.

One process and one thread. Rates are counted in CPU seconds (of this process and its children), so that another
process on the same core does not change them. `iteration.*` is time on the clock: it is what one waits for.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import table
from benchmarks.environments import measure_environments
from benchmarks.iteration import ARM, measure_iteration
from benchmarks.machine import Measured, machine, say
from benchmarks.sampling import Workload, measure_sampling
from benchmarks.training import UNITS, measure_training
from rlanything.config import Config
from rlanything.core.errors import ConfigError
from rlanything.files.records import write_json
from rlanything.planning import check
from rlanything.runs import build

FILE = "bench.json"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmarks of the project in `--root`; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=Path, default=Path(), metavar="DIR", help="project; default: here")
    parser.add_argument(
        "--params", type=Path, metavar="FILE", help="configuration; default: params.yaml there"
    )
    args = parser.parse_args(argv)
    root = args.root.resolve()
    try:
        result = measure_all(check.read(args.params or root / "params.yaml", root), root)
    except ConfigError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    write_json(root / FILE, result)
    table.show(result)
    return 0


def measure_all(config: Config, root: Path, work: Workload | None = None, units: int = UNITS) -> Measured:
    """Everything that bench.json holds. `work`, `units`: sizes of the random text. Raises `ConfigError`."""
    build.one_thread()
    notes: list[str] = []
    result: Measured = {"machine": machine(), "notes": notes}
    say("environment steps")
    result["env"] = measure_environments(config, notes)
    say("sampling and votes, about half a minute")
    result |= measure_sampling(work)
    result["training"], result["iteration"] = measure_learning(config, root, notes, units)
    return result


def measure_learning(
    config: Config, root: Path, notes: list[str], units: int = UNITS
) -> tuple[Measured, Measured | None]:
    """Training speed and a whole iteration, on real models and tasks where they are, otherwise on random rows."""
    say(f"two iterations of arm {ARM}")
    try:
        return measure_iteration(config, root)
    except ConfigError as error:
        notes.append(
            f"No iteration was measured: {error}. Training was measured on random rows of a random model."
        )
    say("training on random rows")
    return measure_training(config, units), None


if __name__ == "__main__":
    sys.exit(main())
