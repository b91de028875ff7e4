"""`rlanything buffer diff` and `drift`: what changed between buffers, and over the iterations of one run."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.views import commands
from rlanything.buffer.views.cli.output import print_page, print_text
from rlanything.buffer.views.find.arms import are_arms
from rlanything.core.printable import safe
from rlanything.parser import Subparsers

if TYPE_CHECKING:
    from rlanything.files.outputs import Output


_NAMES = """
A buffer is named by a path or a run below runs/, each optionally @ITERATION; by a .jsonl or .parquet file; or by
REVISION[:RUN[@ITERATION]], where REVISION is what git calls one (main, HEAD~2, a tag) or a DVC experiment's name.
With one name, a revision is compared with the run on disk, and a run's start with its end. With three, the first is
where the other two come from. Two arms, such as full and low:full, are compared seed by seed and on average.
"""


Arms = Callable[[argparse.Namespace], None]
"""Prints the comparison of two arms over their seeds, by what this room may not import."""


def add_diff(commands: Subparsers[argparse.ArgumentParser], arms: Arms) -> None:
    """Add `buffer diff`."""
    parser = commands.add_parser("diff", help="compare two buffers", description=_NAMES)
    parser.add_argument(
        "names", metavar="BUFFER", nargs="+", help="[A] B, BASE A B for three ways, or ARM ARM"
    )
    parser.add_argument("--stat", action="store_true", help="counts, difficulty and concentration, no slots")
    kinds = "changed, harder, easier, both ways, replaced, added, removed, more than once, rejected, invalid"
    parser.add_argument("--only", default="", metavar="KIND", help=f"list only these slots: {kinds}")
    parser.add_argument(
        "--by", default="", metavar="FIELD", help="where the change concentrates, by this field"
    )
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 when there are differences")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="as JSON, complete")
    how.add_argument(
        "--html", type=Path, metavar="FILE", help="as a page that can be sorted and filtered, into FILE"
    )
    how.add_argument("--md", action="store_true", help="as Markdown, for a pull request")
    parser.set_defaults(run=_answer_diff, arms=arms)


def add_drift(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add `buffer drift`."""
    parser = commands.add_parser("drift", help="how far the tasks moved from where they began")
    parser.add_argument("name", metavar="RUN", help="a run, RUN@ITERATION, or REVISION[:RUN]")
    parser.add_argument("--seed", type=int, default=0, help="of the permutation test behind p; default: 0")
    parser.add_argument("--json", action="store_true", help="as JSON, complete")
    parser.set_defaults(run=_answer_drift)


def _answer_diff(args: argparse.Namespace) -> int:
    from rlanything.buffer.views.place import free_page

    place = None if args.html is None else free_page(args.html)
    if len(args.names) > 3:
        raise TaskBufferError(
            f"{len(args.names)} buffers were named; diff compares two, or two with their base"
        )
    if len(args.names) == 2 and are_arms(args.names[0], args.names[1], args.root):
        _require_no_option(args)
        args.arms(args)
        return 0
    differs = (_three_ways if len(args.names) == 3 else _two_ways)(args, place)
    return int(args.exit_code and differs)


def _require_no_option(args: argparse.Namespace) -> None:
    """Raise `TaskBufferError` for an option that a comparison of two arms does not take."""
    options = ("stat", "only", "by", "exit_code", "html", "md")
    given = [f"--{option.replace('_', '-')}" for option in options if getattr(args, option)]
    if given:
        raise TaskBufferError(
            f"{', '.join(given)}: a comparison of two arms takes --json only; name a seed of each, such as "
            f"{args.names[0]}/seed-0"
        )


def _two_ways(args: argparse.Namespace, place: Output | None) -> bool:
    from rlanything.buffer.views.compare.markdown import diff_markdown
    from rlanything.buffer.views.compare.text import diff_text

    only = args.only.replace("-", " ")
    listed = args.exit_code or not args.stat  # the counts do not tell every difference
    page = commands.diff(*args.names, only=only, by=args.by, details=listed, root=args.root)
    # The record of one run may have refused rewrites where the buffers are the same.
    differs = any(args.only or _changes(row["patch"]) for row in page["slots"] or ())
    if args.stat:
        page["slots"] = None
    if place is not None:
        from rlanything.buffer.views.compare.html import diff_html

        _write(place, args.html, diff_html(page))
    elif args.md:
        print_text(diff_markdown(page))
    else:
        print_page(page, diff_text, args.json)
    return differs


def _changes(patch: Mapping[str, Any]) -> bool:
    """Whether a slot's patch changes anything."""
    return any(value for key, value in patch.items() if key != "kept")


def _three_ways(args: argparse.Namespace, place: Output | None) -> bool:
    from rlanything.buffer.views.compare.markdown import three_markdown
    from rlanything.buffer.views.compare.three_way import three_text

    if args.stat or args.only or args.by:
        raise TaskBufferError("a comparison of three takes --json, --md, --html and --exit-code only")
    page: dict[str, Any] = commands.diff3(*args.names, root=args.root)
    if place is not None:
        from rlanything.buffer.views.compare.html import three_html

        _write(place, args.html, three_html(page))
    elif args.md:
        print_text(three_markdown(page))
    else:
        print_page(page, three_text, args.json)
    return bool(page["slots"])


def _answer_drift(args: argparse.Namespace) -> int:
    from rlanything.buffer.views.history.drift import drift_text

    print_page(commands.drift(args.name, seed=args.seed, root=args.root), drift_text, args.json)
    return 0


def _write(place: Output, name: Path, page: str) -> None:
    place.write_text(page)
    print_text(f"wrote {safe(str(name))}\n")
