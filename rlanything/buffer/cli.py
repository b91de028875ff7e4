"""`rlanything buffer`: its commands, and `ls` and `show`: what a run's tasks became, in a terminal or as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from rlanything.buffer import view
from rlanything.buffer.cli_compare import add_diff, add_drift
from rlanything.buffer.cli_history import add_log, add_verify
from rlanything.buffer.cli_transfer import add_export, add_import, add_migrate
from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.output import json_text, print_text, report, screen
from rlanything.buffer.render import Screen, run_text, runs_text, slot_text
from rlanything.buffer.runs import find_runs
from rlanything.buffer.source import RUNS, find

_ABOUT = "What happened to the tasks of a run: read, compare, check and exchange its task buffer."


def ls(
    where: str = str(RUNS),
    *,
    changed: bool = False,
    iteration: int | None = None,
    as_json: bool = False,
    root: Path = Path(),
    screen: Screen | None = None,
) -> str:
    """The slots of the run `where` names, or the runs below the folder `where`, in `root`. Raises `TaskBufferError`."""
    path = next((p for p in (root / where, root / RUNS / where) if p.is_dir()), None)
    runs = find_runs(path) if path else []
    if path is None or runs == [path] or not runs:
        page = view.run_page(where, find(where, root).run_buffer, iteration, changed)
        return json_text(page) if as_json else run_text(page, screen or Screen())
    if changed:
        raise TaskBufferError(f"{where} holds {len(runs)} runs; --changed needs one of them")
    rows = [view.run_row(run.relative_to(path).as_posix(), run, iteration) for run in runs]
    return json_text(rows) if as_json else runs_text(rows, screen or Screen())


def show(
    where: str,
    target: str,
    *,
    iteration: int | None = None,
    as_json: bool = False,
    root: Path = Path(),
    screen: Screen | None = None,
) -> str:
    """One slot of the run `where`, found by its number or by the beginning of a task id. Raises `TaskBufferError`."""
    found = find(where, root)
    page = view.slot_page(where, found if iteration is None else found.at(iteration), target)
    return json_text(page) if as_json else slot_text(page, screen or Screen())


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands of `rlanything buffer`. Each sets `run`: from parsed arguments, with `root`, to an exit code."""
    buffer = subparsers.add_parser("buffer", help="what happened to the tasks", description=_ABOUT)
    commands = buffer.add_subparsers(title="commands", required=True, metavar="COMMAND")
    lister = commands.add_parser("ls", help="list runs, or the slots of a run")
    lister.add_argument("where", nargs="?", default=str(RUNS), metavar="RUN|FOLDER", help="default: runs")
    lister.add_argument("--changed", action="store_true", help="only slots that are no longer at v0")
    shower = commands.add_parser("show", help="show one slot: task, lineage, events, critic")
    shower.add_argument("where", metavar="RUN")
    shower.add_argument("target", metavar="SLOT|TASK_ID_PREFIX")
    for parser, run in ((lister, _run_ls), (shower, _run_show)):
        parser.add_argument(
            "--iteration", type=int, metavar="N", help="as iteration N found it; default: at the end"
        )
        parser.add_argument("--json", action="store_true", help="as JSON, complete")
        parser.set_defaults(run=run)
    for add in (add_log, add_diff, add_drift, add_verify, add_export, add_import, add_migrate):
        add(commands)


def _run_ls(args: argparse.Namespace) -> int:
    options = {"changed": args.changed, "iteration": args.iteration, "as_json": args.json, "root": args.root}
    return _print(lambda: ls(args.where, **options, screen=screen()))


def _run_show(args: argparse.Namespace) -> int:
    options = {"iteration": args.iteration, "as_json": args.json, "root": args.root}
    return _print(lambda: show(args.where, args.target, **options, screen=screen()))


def _print(text: Callable[[], str]) -> int:
    def answer() -> int:
        print_text(text())
        return 0

    return report(answer)
