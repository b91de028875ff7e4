"""The command line. What a command needs is imported when it runs, so that `rlanything --help` answers at once.

Exit codes: 0 done; 1 what was compared differs; 2 the input or the machine does not allow it, in one message, or code
of an environment ended it, or what was printed is lost because standard output is closed; 130 interrupted; 141 the
reader of the output closed it, so that nobody may have read the verdict.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlanything import __version__
from rlanything.core.errors import EnvironmentFailure, RLAnythingError, in_workspace
from rlanything.core.printable import tell
from rlanything.parser import Parser, Subparsers
from rlanything.planning.commands import add_plan, params_file
from rlanything.planning.config_commands import add_config, require_place
from rlanything.stages import by_dvc
from rlanything.workspaces import places
from rlanything.workspaces.cli import add_stages, settle


class _Unread(io.TextIOWrapper):
    """Stands for a standard output that is closed. lost: whether anything was printed."""

    lost = False

    def write(self, text: str, /) -> int:
        self.lost = self.lost or bool(text)
        return super().write(text)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    _open_closed()
    try:
        return _heard(answer(build_parser(), sys.argv[1:] if argv is None else argv))
    except SystemExit as end:  # of the parser: a wrong command line, or --help
        raise SystemExit(end.code or _heard(0)) from None


def _open_closed() -> None:
    """Open what is closed of standard input, output and error, with nobody at the other end.

    Python has None in their place. The next file that is opened would have their number, and what a child process
    prints would end in it.
    """
    for name in ("stdin", "stdout", "stderr"):  # in the order of their numbers: the lowest free one is given
        if getattr(sys, name) is None:
            place = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(place, True)
            kind = _Unread if name == "stdout" else io.TextIOWrapper
            file = os.fdopen(place, "rb" if name == "stdin" else "wb")
            setattr(sys, name, kind(file, encoding="utf-8", errors="backslashreplace"))


def _heard(code: int) -> int:
    """The exit code. A verdict that was printed where nobody can read it is none."""
    if code > 1 or not (isinstance(sys.stdout, _Unread) and sys.stdout.lost):
        return code
    tell("standard output is closed, so what this command printed is lost; what it wrote into files is kept")
    return 2


def _end_with_dvc() -> None:
    """Where DVC runs this command as a stage, end with it."""
    if by_dvc():
        from rlanything.workspaces import dvc_process

        dvc_process.end_with_it()


def answer(parser: argparse.ArgumentParser, words: Sequence[str]) -> int:
    """Run the command that the words are for a parser, and return its exit code. Errors are printed."""
    args = parser.parse_args(words)
    again = f"the same command goes on from there: {shlex.join(['rlanything', *words])}"
    try:
        settle(args)
        _end_with_dvc()
        code: int = args.run(args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        tell(f"interrupted; what is finished is kept, {again}")
        return 130
    except SystemExit as end:  # nothing of this program ends a command so
        if args.traceback:
            raise
        tell(
            f"code that the command ran, as that of an environment, ended it with sys.exit({end.code!r}). It is not "
            "done; what is finished is kept. --traceback shows where"
        )
        return 2
    except BrokenPipeError:  # the reader, such as `head`, had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        if args.traceback:
            raise
        tell(_explain(error, again))
        return 2
    except RLAnythingError as error:
        if args.traceback:
            raise
        tell(in_workspace(places.beside(str(error), args.root), args.within) + _where(error))
        return 2
    return code


def build_parser() -> argparse.ArgumentParser:
    """The parser of every command."""
    from rlanything.buffer.views.cli.commands import add_commands as add_buffer
    from rlanything.checks.cli import add_checks
    from rlanything.compare.cli import add_compare, add_run_page, diff_of_arms
    from rlanything.exams.commands import add_commands as add_livebench
    from rlanything.exports.cli import add_export
    from rlanything.repro.cli import add_commands as add_proof
    from rlanything.repro.cli import replayed
    from rlanything.rollouts.cli import add_commands as add_rollouts
    from rlanything.scaffold.cli import add_env
    from rlanything.view.cli import add_commands as add_view
    from rlanything.watch.cli import add_commands as add_watch
    from rlanything.watch.work.shown import shown

    parser = plain_parser()
    # Of `Parser`, like all subparsers; the rooms' commands take any.
    commands: Subparsers[Any] = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    add_config(commands)
    add_stages(commands, shown)
    add_run_page(commands)
    add_plan(commands)
    _add_rehearse(commands)
    _add_sweep(commands)
    add_checks(commands)
    add_buffer(commands, replayed, diff_of_arms)
    add_export(add_rollouts(commands))
    add_view(commands)
    add_compare(commands)
    add_watch(commands)
    add_env(commands)
    add_livebench(commands)
    add_proof(commands)
    return parser


def plain_parser() -> Parser:
    """The parser without commands, with the options of all of them."""
    parser = Parser(
        prog="rlanything", description="Train policy, reward model and environment tasks together."
    )
    parser.add_argument("--version", action="version", version=f"rlanything {__version__}")
    parser.add_argument(
        "--root", type=Path, metavar="DIR", help="project folder; default: the nearest one, here or above"
    )
    parser.add_argument(
        "--workspace",
        metavar="NAME",
        help="a folder of .rla/ with results of other settings: `rlanything ls`",
    )
    parser.add_argument(
        "--params", type=Path, metavar="FILE", help="configuration; default: params.yaml there"
    )
    parser.add_argument("--traceback", action="store_true", help="show where an error comes from")
    return parser


def _add_rehearse(commands: Subparsers[argparse.ArgumentParser]) -> None:
    rehearse = commands.add_parser(
        "rehearse", help="make stand-ins for a large experiment's models and data, and its params.yaml"
    )
    rehearse.add_argument("overrides", nargs="*", metavar="key=value", help="e.g. env=coding_data")
    rehearse.add_argument(
        "--check", action="store_true", help="only say whether it could be rehearsed here; write nothing"
    )
    rehearse.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help="optimizer steps of each role's lessons; default: 100, none for models of a real checkpoint's size",
    )
    for role in ("policy", "reward", "adapter"):
        rehearse.add_argument(
            f"--{role}",
            metavar="ARCHITECTURE",
            help="qwen2, qwen3, llama, qwen2_5_vl or qwen3_vl; or a name in experiments/model/sizes.json, for its size",
        )
    rehearse.set_defaults(run=_rehearse)


def _add_sweep(commands: Subparsers[argparse.ArgumentParser]) -> None:
    sweep = commands.add_parser("sweep", help="train many settings, compare them; goes on after a kill")
    sweep.add_argument("file", type=Path, metavar="FILE", help="e.g. experiments/sweep/thresholds.yaml")
    sweep.add_argument("--workers", type=int, default=2, metavar="N", help="trials at once here; default: 2")
    sweep.add_argument("--storage", metavar="URL", help="a database instead of a journal file in the folder")
    sweep.add_argument(
        "--folder", type=Path, metavar="DIR", help="shared by all workers; default: .rla/sweeps"
    )
    sweep.add_argument(
        "--experiments", action="store_true", help="also record each trial as a DVC experiment"
    )
    sweep.add_argument(
        "--dry-run", action="store_true", help="check the file and print its trials, run nothing"
    )
    sweep.add_argument(
        "--rerun",
        metavar="N",
        help="run published trial N, or fresh/N, again in --output; exit 1 when it differs",
    )
    sweep.add_argument("--output", type=Path, metavar="DIR", help="a folder of its own for --rerun")
    sweep.add_argument(
        "--anyway", action="store_true", help="--rerun also from other base models than the trial's"
    )
    sweep.set_defaults(run=_sweep)


def _sweep(args: argparse.Namespace) -> int:
    root = args.root.resolve()
    if args.rerun is not None or args.output is not None or args.anyway:
        return _rerun(args, root)
    from rlanything.sweep import command

    if args.dry_run:
        command.print_sweep(args.file, root)
        return 0
    folder = None if args.folder is None else args.folder.resolve()
    options = command.Options(args.workers, args.storage, folder, args.experiments)
    command.run_sweep(args.file, root, params_file(args).resolve(), options)
    return 0


def _rerun(args: argparse.Namespace, root: Path) -> int:
    from rlanything.repro import rerun

    params, output = params_file(args).resolve(), None if args.output is None else args.output.resolve()
    outcome = rerun.rerun_trial(args.file, root, params, args.rerun, output, tell, anyway=args.anyway)
    print(outcome.text, end="")
    return 0 if outcome.same else 1


def _rehearse(args: argparse.Namespace) -> int:
    from rlanything.config import parse
    from rlanything.planning import compose
    from rlanything.planning.costs import sizes
    from rlanything.rehearsal import standins, unfinished

    overrides = ["scale=rehearsal", *args.overrides]
    kinds = {role: getattr(args, role) for role in standins.ROLES if getattr(args, role)}
    declared = sizes.declared(args.root)
    for name in declared.keys() & set(kinds.values()):
        declared[name] = sizes.checked_fields(declared[name], name, str(sizes.DECLARED))
    config = parse(compose.compose(overrides, args.root))
    if args.check:
        standins.check(config, args.root, args.steps, kinds, declared)
        print(f"{' '.join(overrides)}: can be rehearsed here")
        return 0
    params = params_file(args)
    require_place(params, args.root, "--params")
    for folder in standins.make(config, args.root, args.steps, kinds, declared):
        print(f"{folder}: written")
    compose.write(params, overrides, args.root)
    unfinished.end(args.root)
    print(f"{params}: written; the rehearsal is `dvc repro`")
    return 0


def _where(error: RLAnythingError) -> str:
    """Where an environment's own code raised the error, how to see which line; '' for other errors."""
    # What another process raised comes without its cause, but with the traceback as a note.
    within = error.__cause__ is not None or hasattr(error, "__notes__")
    return ". --traceback shows where" if within and isinstance(error, EnvironmentFailure) else ""


def _explain(error: OSError, again: str) -> str:
    """What the operating system refused, and how to go on where the disk is full or may not be written."""
    text = f"{error.strerror}: {error.filename}" if error.strerror and error.filename else str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{text}. Free some space; {again}"
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return f"{text}. What a command writes, it writes into the project's folder; --root names another one"
    return text


if __name__ == "__main__":
    sys.exit(main())
