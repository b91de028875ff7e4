"""The command `rlanything compare`, and the option `rlanything report --run`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlanything.core.errors import ConfigError
from rlanything.parser import Subparsers

if TYPE_CHECKING:
    from rlanything.files.outputs import Output


_ABOUT = (
    "Results side by side: what differs in the settings, how far the others are from the first, with intervals and "
    "tests where seeds or tasks pair. A name is an arm, a run or its folder, a workspace or the folder of a project, "
    "WORKSPACE:RUN, a DVC experiment, or a git revision with a recorded report."
)

_FOLDER = "; FOLDER/ (with the /): a folder with the figures as files"


def add_compare(commands: Subparsers[Any]) -> None:
    """Add `compare`. It sets `run`: from parsed arguments, which include `root`, to an exit code."""
    parser = commands.add_parser("compare", help="results side by side, with tests", description=_ABOUT)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="e.g. outcome full, or full/seed-0 full/seed-1"
    )
    parser.add_argument(
        "--rev",
        action="append",
        default=[],
        metavar="REV",
        help="a git revision; they come first, e.g. --rev HEAD~5 .",
    )
    parser.add_argument("--output", metavar="PLACE", help=f"also as a page for a browser{_FOLDER}")
    parser.set_defaults(run=_compare)


def _compare(args: argparse.Namespace) -> int:
    from rlanything.buffer.views.cli.output import print_text, screen
    from rlanything.compare.comparison import compare
    from rlanything.compare.page import comparison_files, comparison_page
    from rlanything.compare.sides import sides
    from rlanything.compare.text import short

    root = args.root.resolve()
    output = None if args.output is None else _free(args.output)
    found = compare(sides(args.rev, args.names, root), root)
    print_text(short(found, screen()))
    if output is not None:
        _write(args.output, output, lambda: comparison_page(found), lambda: comparison_files(found))
    return 0


def add_run_page(commands: Subparsers[Any]) -> None:
    """Give the stage `report` the options for the page of one run; without them it stays what it is."""
    report = commands.choices["report"]
    report.add_argument(
        "--run",
        dest="run_name",
        metavar="RUN",
        help="one run as a page, also in training: an arm with its seeds, a run or its folder, e.g. full/seed-0",
    )
    report.add_argument("--output", metavar="PLACE", help=f"with --run; default: run.html{_FOLDER}")
    stage: Callable[[argparse.Namespace], int] = report.get_default("run")
    report.set_defaults(run=lambda args: _report(args, stage))


def _report(args: argparse.Namespace, stage: Callable[[argparse.Namespace], int]) -> int:
    names = [word for word in args.overrides if "=" not in word]
    if args.run_name is None:
        if names:
            raise ConfigError(
                f"report {names[0]}: not key=value; the page of one run: report --run {names[0]}"
            )
        if args.output is not None:
            raise ConfigError("--output: only with --run; the whole report is written to report/")
        return stage(args)
    if args.overrides:
        raise ConfigError(f"--run shows what was recorded; it takes no {args.overrides[0]!r}")
    from rlanything.buffer.views.cli.output import print_text
    from rlanything.compare.run.page import headline, single_files, single_page
    from rlanything.compare.run.single import single
    from rlanything.core.printable import one_line

    given = args.output or "run.html"
    output = _free(given)
    found = single(args.run_name, args.root.resolve())
    print_text(one_line(headline(found).replace("`", "").replace("\\|", "|")) + "\n")
    _write(given, output, lambda: single_page(found), lambda: single_files(found))
    return 0


def _free(given: str) -> Output:
    """The place that was given, a folder if it ends so. Raises `ConfigError` for one that holds something else."""
    from rlanything.compare.figures import free, free_folder

    return free_folder(Path(given)) if given.endswith("/") else free(Path(given))


def _write(
    given: str, output: Output, page: Callable[[], str], files: Callable[[], Mapping[str, bytes]]
) -> None:
    if given.endswith("/"):
        with output.folder() as folder:
            for name, content in files().items():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_bytes(content)
    else:
        output.write_text(page())
    print(f"wrote {output.place}")


def diff_of_arms(args: argparse.Namespace) -> None:
    """Print the comparison of the buffers of two arms, `args.names`: what `rlanything buffer diff` may not import."""
    from rlanything.buffer.views.cli.output import print_page
    from rlanything.compare.buffers import diff_arms
    from rlanything.compare.buffers.text import arms_text

    print_page(diff_arms(*args.names, root=args.root), arms_text, args.json)
