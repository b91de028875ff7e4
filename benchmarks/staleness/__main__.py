"""`python -m benchmarks.staleness`: print the table, or JSON."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import benchmarks.staleness
from benchmarks.staleness.measuring import BASE, measure
from rlanything.config import load
from rlanything.core.errors import ConfigError
from rlanything.runs import build


def main() -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.staleness", description=benchmarks.staleness.__doc__
    )
    parser.add_argument("--root", type=Path, default=Path(), metavar="DIR", help="project; default: here")
    parser.add_argument(
        "--params", type=Path, metavar="FILE", help="configuration; default: params.yaml there"
    )
    parser.add_argument("--iterations", type=int, default=4, help="of each training (4)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; medians are printed (3)")
    parser.add_argument(
        "--wait", type=float, default=0.0, metavar="MS", help="wait of each step of a game (0)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    asked = parser.parse_args()
    root = asked.root.resolve()
    build.one_thread()
    try:
        config = load(asked.params or root / "params.yaml")
        found = measure(config, root, asked.iterations, asked.rounds, asked.wait / 1000)
    except ConfigError as error:
        print(f"staleness: {error}", file=sys.stderr)
        return 2
    if asked.json:
        print(json.dumps(found, indent=1))
        return 0
    print(
        f"{'form':<14} {'s/iteration':>11} {'rollout':>8} {'beside':>8} {'waiting':>8} {f'times {BASE}':>16}"
    )
    for name, row in found.items():
        shown = " ".join(f"{row[key]:>8}" for key in ("rollout", "beside", "waiting"))
        print(f"{name:<14} {row['seconds']:>11} {shown} {row['times']:>16}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
