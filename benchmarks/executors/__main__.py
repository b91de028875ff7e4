"""`python -m benchmarks.executors`: print the table, or JSON."""

from __future__ import annotations

import argparse
import json

import benchmarks.executors
from benchmarks.executors.measuring import measure


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.executors", description=benchmarks.executors.__doc__
    )
    parser.add_argument("--tasks", type=int, default=12, help="tasks whose programs are run (12)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds; medians are printed (5)")
    parser.add_argument("--backend", default="bwrap", help="of the sandbox: bwrap | docker | subprocess")
    parser.add_argument("--json", action="store_true", help="print JSON")
    asked = parser.parse_args()
    found = measure(asked.tasks, asked.rounds, asked.backend)
    if asked.json:
        print(json.dumps(found, indent=1))
        return
    print(f"{'work':<9} {'form':<10} {'workers':>7} {'seconds':>8} {'times one worker':>17}")
    for name, row in found.items():
        what, form, count = name.split()
        print(f"{what:<9} {form:<10} {count:>7} {row['seconds']:>8} {row['times']:>17}")


if __name__ == "__main__":
    main()
