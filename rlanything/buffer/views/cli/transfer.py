"""`rlanything buffer export` and `import`: buffers to files and back."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from rlanything.buffer.storage import FOLDER, snapshot_path
from rlanything.buffer.views import commands
from rlanything.buffer.views.cli.output import print_text
from rlanything.core.errors import in_workspace
from rlanything.core.printable import safe
from rlanything.files.overrides import overrides
from rlanything.files.project import PARAMS
from rlanything.parser import Subparsers


def add_export(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add `buffer export`."""
    parser = commands.add_parser("export", help="write a buffer as .jsonl, .parquet or game folders")
    parser.add_argument("name", metavar="BUFFER", help="as in diff")
    parser.add_argument("target", metavar="FILE|FOLDER", type=Path)
    parser.add_argument(
        "--games", action="store_true", help="current tasks as games, in the family's own format"
    )
    parser.set_defaults(run=_answer_export)


def add_import(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add `buffer import`."""
    parser = commands.add_parser("import", help="make a starting buffer of an exported one")
    parser.add_argument("path", metavar="FILE|FOLDER", type=Path)
    parser.add_argument("target", metavar="RUN", type=Path, help="folder of the run that is to start with it")
    parser.add_argument("--games", action="store_true", help="read games in the family's own format")
    parser.add_argument(
        "--restart", action="store_true", help="current tasks become v0; the history is left out"
    )
    parser.set_defaults(run=_answer_import)


def _answer_export(args: argparse.Namespace) -> int:
    slots = commands.export(args.name, args.target, games=args.games, root=args.root)
    print_text(f"wrote {slots} slots to {safe(str(args.root / args.target))}\n")
    return 0


def _answer_import(args: argparse.Namespace) -> int:
    options = {"games": args.games, "restart": args.restart, "root": args.root}
    buffer = commands.import_(args.path, args.target, **options)
    place = safe(str(args.root / args.target))
    print_text(f"{place} starts with {len(buffer)} slots; digest {buffer.digest[:12]}\n")
    start = {
        "tasks.train": len(buffer),
        "tasks.start": snapshot_path(args.target / FOLDER, 0),
        "tasks.start_digest": buffer.digest,
    }
    kept = [
        text for text in overrides(args.root / PARAMS) if text.partition("=")[0].lstrip("+~") not in start
    ]
    words = shlex.join([*kept, *(f"{key}={value}" for key, value in start.items())])
    command = in_workspace(f"`rlanything config write {words}`", args.within)
    print_text(f"train on its current tasks: {safe(command)}\n")
    return 0
