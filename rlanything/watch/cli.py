"""The command `rlanything watch`."""

from __future__ import annotations

import argparse

from rlanything.parser import Subparsers

_ABOUT = (
    "What runs in the project now: stage, arm, seeds, time left, accuracies, warnings and what to do about them. It "
    "works beside a training, after it, and over a sweep. Without RUN it shows what runs in the project, its "
    "workspaces, sweeps and checks, and the project itself where nothing runs. Without a terminal it prints once."
)


def add_commands(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add `watch`. It sets `run`: from parsed arguments, which include `root`, to an exit code."""
    watch = commands.add_parser(
        "watch", help="a run, pipeline or sweep in progress, live", description=_ABOUT
    )
    watch.add_argument(
        "run_name", nargs="?", default="", metavar="RUN",
        help="an arm, a run, a workspace, a sweep, or a folder, e.g. full/seed-0",
    )  # fmt: skip
    watch.add_argument("--once", action="store_true", help="print it once")
    watch.add_argument("--json", action="store_true", help="the same once, as JSON")
    watch.set_defaults(run=_watch)


def _watch(args: argparse.Namespace) -> int:
    import sys

    from rlanything.buffer.views.cli.output import print_page, print_text
    from rlanything.watch import screen
    from rlanything.watch.text.data import data
    from rlanything.watch.view import Watched

    watched = Watched(args.project.resolve(), args.root.resolve(), args.run_name)
    if args.json:
        print_page(data(watched.look()), lambda page, screen: "", True)
    elif args.once or not sys.stdout.isatty():
        print_text(screen.snapshot(watched.look()))
    else:
        screen.follow(watched)
    return 0
