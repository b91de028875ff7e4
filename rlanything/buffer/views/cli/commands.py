"""`rlanything buffer`: the list of its commands, and the commands `ls` and `show`."""

from __future__ import annotations

import argparse

from rlanything.buffer.views import commands
from rlanything.buffer.views.cli.compare import Arms, add_diff, add_drift
from rlanything.buffer.views.cli.history import add_log, add_verify
from rlanything.buffer.views.cli.output import print_page
from rlanything.buffer.views.cli.transfer import add_export, add_import
from rlanything.buffer.views.commands import Deep
from rlanything.buffer.views.find.names import RUNS
from rlanything.parser import Subparsers

_ABOUT = "What happened to the tasks of a run: read, compare, check and exchange its task buffer."


def add_commands(subparsers: Subparsers[argparse.ArgumentParser], deep: Deep, arms: Arms) -> None:
    """Add the commands of `rlanything buffer`. Each sets `run`: from parsed arguments, with `root`, to an exit code.

    deep: the replay of a run, for `buffer verify --deep`. arms: the comparison of two arms, for `buffer diff`.
    """
    buffer = subparsers.add_parser("buffer", help="what happened to the tasks", description=_ABOUT)
    commands = buffer.add_subparsers(title="commands", required=True, metavar="COMMAND")
    lister = commands.add_parser("ls", help="list runs, or the slots of a run")
    lister.add_argument("where", nargs="?", default=str(RUNS), metavar="RUN|FOLDER", help="default: runs")
    lister.add_argument("--changed", action="store_true", help="only slots that are no longer at v0")
    shower = commands.add_parser("show", help="show one slot: task, lineage, events, critic")
    shower.add_argument("where", metavar="RUN", help="a run, e.g. full/seed-0")
    shower.add_argument(
        "target", metavar="SLOT|TASK_ID_PREFIX", help="a slot, or at least 4 characters of a task's id"
    )
    for parser, answer in ((lister, _answer_ls), (shower, _answer_show)):
        parser.add_argument(
            "--iteration", type=int, metavar="N", help="as iteration N found it; default: at the end"
        )
        parser.add_argument("--json", action="store_true", help="as JSON, complete")
        parser.set_defaults(run=answer)
    for add in (add_log, add_drift, add_export, add_import):
        add(commands)
    add_diff(commands, arms)
    add_verify(commands, deep)


def _answer_ls(args: argparse.Namespace) -> int:
    from rlanything.buffer.views.history.slots_text import ls_text

    page = commands.ls(args.where, changed=args.changed, iteration=args.iteration, root=args.root)
    print_page(page, ls_text, args.json)
    return 0


def _answer_show(args: argparse.Namespace) -> int:
    from rlanything.buffer.views.history.slots_text import slot_text

    print_page(
        commands.show(args.where, args.target, iteration=args.iteration, root=args.root), slot_text, args.json
    )
    return 0
