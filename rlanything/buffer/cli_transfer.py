"""`rlanything buffer export`, `import` and `migrate`: buffers to files and back, and from older files."""

from __future__ import annotations

import argparse
from pathlib import Path

from rlanything.buffer import commands
from rlanything.buffer.output import print_text, report
from rlanything.buffer.runs import FOLDER
from rlanything.buffer.storage import snapshot_path

Subparsers = argparse._SubParsersAction  # argparse has no public name for it


def add_export(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add `buffer export`."""
    parser = commands.add_parser("export", help="write a buffer as .jsonl, .parquet or game folders")
    parser.add_argument("name", metavar="BUFFER", help="as in diff")
    parser.add_argument("target", metavar="FILE|FOLDER", type=Path)
    parser.add_argument(
        "--games", action="store_true", help="current tasks as games, in the family's own format"
    )
    parser.set_defaults(run=_run_export)


def add_import(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add `buffer import`."""
    parser = commands.add_parser("import", help="make a starting buffer of an exported one")
    parser.add_argument("path", metavar="FILE|FOLDER", type=Path)
    parser.add_argument("target", metavar="RUN", type=Path, help="folder of the run that is to start with it")
    parser.add_argument("--games", action="store_true", help="read games in the family's own format")
    parser.add_argument(
        "--restart", action="store_true", help="current tasks become v0; the history is left out"
    )
    parser.set_defaults(run=_run_import)


def add_migrate(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add `buffer migrate`."""
    parser = commands.add_parser("migrate", help="write snapshots of an older schema in the present one")
    parser.add_argument("path", metavar="RUN|FOLDER|FILE", type=Path)
    parser.set_defaults(run=_run_migrate)


def _run_export(args: argparse.Namespace) -> int:
    def answer() -> int:
        slots = commands.export(args.name, args.target, games=args.games, root=args.root)
        print_text(f"wrote {slots} slots to {args.target}\n")
        return 0

    return report(answer)


def _run_import(args: argparse.Namespace) -> int:
    def answer() -> int:
        options = {"games": args.games, "restart": args.restart, "root": args.root}
        buffer = commands.import_(args.path, args.target, **options)
        print_text(f"{args.target} starts with {len(buffer)} slots; digest {buffer.digest[:12]}\n")
        start = f"tasks.start={snapshot_path(args.target / FOLDER, 0)} tasks.start_digest={buffer.digest}"
        print_text(f"train on its current tasks: rlanything config write tasks.train={len(buffer)} {start}\n")
        return 0

    return report(answer)


def _run_migrate(args: argparse.Namespace) -> int:
    def answer() -> int:
        for row in commands.migrate(args.path, root=args.root):
            counts = f"{row['written']} of {row['snapshots']} snapshots written"
            print_text(
                f"{row['name']}: {counts}; {row['bytes']['before']} -> {row['bytes']['after']} bytes\n"
            )
        return 0

    return report(answer)
