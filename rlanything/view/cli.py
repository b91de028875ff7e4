"""The command `rlanything view`."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from rlanything.parser import Subparsers

_ABOUT = (
    "Write a run as a page for a browser: every rollout with its steps, votes or tests, rewards and advantages, and "
    "the history of its task. The page loads nothing from a network."
)


def add_commands(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add `view`. It sets `run`: from parsed arguments, which include `root`, to an exit code."""
    view = commands.add_parser("view", help="a run's rollouts as a page for a browser", description=_ABOUT)
    view.add_argument(
        "run_name", metavar="RUN", help="a run or its folder, e.g. full/seed-0; an arm: its first seed"
    )
    view.add_argument(
        "--output", type=Path, metavar="PATH", help="default: view, or view.html for a single file"
    )
    view.add_argument(
        "--single-file", action="store_true", help="one file that opens without a server; for small runs"
    )
    view.add_argument(
        "--against", metavar="RUN2", help="another run on the same page: its rollouts beside those of RUN"
    )
    view.add_argument(
        "--notes",
        type=Path,
        metavar="FILE",
        help="notes on RUN that a page exported as JSON, to be shown to all",
    )
    view.add_argument(
        "--environment",
        action=argparse.BooleanOptionalAction,
        help="play the episodes again to learn which steps were good and which commands were admissible; "
        "default: where the run's environment is that of the project. It starts what the run's configuration names",
    )
    view.set_defaults(run=_view)


def _view(args: argparse.Namespace) -> int:
    from rlanything.core.printable import safe
    from rlanything.view.export import export

    wanted = args.output or Path("view.html" if args.single_file else "view")
    made = export(
        args.run_name,
        wanted,
        root=args.root.resolve(),
        single=args.single_file,
        environment=args.environment,
        against=args.against,
        notes=args.notes,
    )
    for note in made.notes:
        print(f"note: {safe(note)}")
    parts = zip(made.runs, made.rollouts, made.iterations, strict=True)
    counted = [f"{run}: {a} rollouts of {b} iterations" for run, a, b in parts]
    if made.others:
        others = ", ".join(made.others)
        print(
            safe(
                f"note: a page has one seed of an arm; others: {others}: name one, or put it beside with --against"
            )
        )
    print(safe(f"wrote {' against '.join(counted)} to {made.place}"))
    if not args.single_file:
        place = shlex.quote(str(made.place))
        print(
            f"to look at it: python -m http.server --bind 127.0.0.1 --directory {place} 8000, "
            "then http://localhost:8000"
        )
    return 0
