"""`rlanything buffer diff`: what changed between two buffers."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from rlanything.buffer import commands
from rlanything.buffer.output import print_json, print_text, report, screen

Subparsers = argparse._SubParsersAction  # argparse has no public name for it
Rendering = Callable[[dict[str, Any]], str]

_NAMES = """
A buffer is named by a path or a run below runs/, each optionally @ITERATION; by a .jsonl or .parquet file; or by
REVISION[:RUN[@ITERATION]], where REVISION is what git calls one (main, HEAD~2, a tag) or a DVC experiment's name.
Without B, a revision is compared with the run on disk, and a run's start with its end.
"""


def add_diff(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add `buffer diff`."""
    parser = commands.add_parser("diff", help="compare two buffers", description=_NAMES)
    parser.add_argument("a", metavar="A", help="the old buffer")
    parser.add_argument("b", metavar="B", nargs="?", default="", help="the new one")
    parser.add_argument("--stat", action="store_true", help="counts, difficulty and concentration, no slots")
    kinds = "changed, harder, easier, both ways, replaced, added, removed, more than once, rejected"
    parser.add_argument("--only", default="", metavar="KIND", help=f"list only these slots: {kinds}")
    parser.add_argument(
        "--by", default="", metavar="FIELD", help="where the change concentrates, by this field"
    )
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 when there are differences")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="as JSON, complete")
    how.add_argument("--md", action="store_true", help="as Markdown, for a pull request")
    parser.set_defaults(run=_run_diff)


def _run_diff(args: argparse.Namespace) -> int:
    def answer() -> int:
        from rlanything.buffer.compare.page import differs

        only = args.only.replace("-", " ")
        page = commands.diff(args.a, args.b, only=only, by=args.by, details=not args.stat, root=args.root)
        _print(args, page)
        return int(args.exit_code and differs(page))

    return report(answer)


def _print(args: argparse.Namespace, page: dict[str, Any]) -> None:
    from rlanything.buffer.compare.markdown import diff_markdown
    from rlanything.buffer.compare.text import diff_text

    if args.json:
        print_json(page)
    else:
        print_text(diff_markdown(page) if args.md else diff_text(page, screen()))
