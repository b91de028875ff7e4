"""The command `rlanything rollouts export`."""

from __future__ import annotations

import argparse
from pathlib import Path

from rlanything.parser import Subparsers

_ABOUT = (
    "Write the rollouts of a run as a folder that other tools read: logs for inspect_ai, a dataset of Parquet tables "
    "for the Hugging Face hub, rows for TRL's trainers, episodes of verifiers. The folder appears whole or not at all."
)


def add_export(actions: Subparsers[argparse.ArgumentParser]) -> None:
    """Add `export` to the commands of `rollouts`."""
    export = actions.add_parser(
        "export", help="rollouts for inspect_ai, datasets, TRL, verifiers", description=_ABOUT
    )
    export.add_argument(
        "run_name",
        metavar="RUN",
        help="a run or its folder, e.g. full/seed-0; an arm: all its seeds, each in a folder",
    )
    export.add_argument(
        "--format",
        required=True,
        metavar="NAME",
        help="inspect, datasets, trl-sft, trl-preference, trl-vote-preference, trl-unpaired, trl-stepwise, verifiers",
    )
    export.add_argument("--output", type=Path, required=True, metavar="DIR", help="the folder that is made")
    for name, text in (
        ("iteration", "only these; default: all"),
        ("slot", "of the task buffer"),
        ("rollout", "of the task, from 0"),
    ):
        export.add_argument(f"--{name}", type=int, nargs="+", default=(), metavar="N", help=text)
    export.add_argument(
        "--filter",
        nargs="+",
        default=(),
        metavar="NAME",
        help="rollouts for which all hold: solved, failed, disputed, against, invalid, errors, accepted, trains",
    )
    export.add_argument(
        "--min-reward", type=float, metavar="R", help="rollouts whose mean reward is at least this"
    )
    export.add_argument(
        "--environment",
        action="store_true",
        help="play the episodes again to learn which steps were good. It starts what the run's configuration names",
    )
    export.set_defaults(run=_export)


def _export(args: argparse.Namespace) -> int:
    from rlanything.core.printable import safe
    from rlanything.exports.export import export
    from rlanything.exports.reading import Selection

    selection = Selection(args.iteration, args.slot, args.rollout, args.filter, args.min_reward)
    made = export(
        args.run_name,
        args.format,
        args.output,
        selection=selection,
        environment=args.environment,
        root=args.root.resolve(),
    )
    for note in made.notes:
        print(f"note: {safe(note)}")
    print(f"wrote {', '.join(f'{count:,} {name}' for name, count in made.counts.items())} to {made.place}")
    return 0
