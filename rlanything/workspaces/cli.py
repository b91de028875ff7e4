"""The commands of the pipeline's stages, in the project or in a workspace, and `rlanything ls`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rlanything.core.errors import ConfigError
from rlanything.core.printable import tell
from rlanything.files.project import PARAMS
from rlanything.parser import NEEDED, Subparsers
from rlanything.planning.commands import add_arguments as add_plan_arguments
from rlanything.planning.commands import (
    composed,
    configuration,
    params_file,
    print_plan,
    refuse_arguments,
    say_uncommitted,
    warn,
)
from rlanything.stages import BEFORE_TRAINING, BOOTSTRAP, EVALUATE, LABEL, REPORT, TRAIN, by_dvc, of_arm
from rlanything.workspaces import places

if TYPE_CHECKING:
    from rlanything.config import Config
    from rlanything.stages.stage import Stage

REDIVIDE = "redivide"
Shown = Callable[[Path, str, str, bool], AbstractContextManager[None]]
"""From root, the words of a command, how much it prints, and whether it keeps the terminal, to what surrounds it."""


def settle(args: argparse.Namespace) -> None:
    """Set `args.root`, and `args.project` and `args.within` (the name of the workspace), which differ in a workspace.

    Raises `ConfigError`.
    """
    args.within = ""
    if args.root is not None and not args.root.is_dir():
        raise ConfigError(f"--root {args.root}: no such folder")
    args.project = places.project(Path()) if args.root is None else args.root
    new = getattr(args, "overrides", None) and getattr(args, "stage", None)
    args.root = args.project if args.workspace is None or new else places.find(args.workspace, args.project)
    args.within = "" if args.root == args.project else args.workspace


def add_stages(commands: Subparsers[argparse.ArgumentParser], shown: Shown) -> None:
    """Add a command for every stage, and `ls`. shown: shows the progress of a stage."""
    from rlanything.stages.declared import STAGES

    for stage in STAGES:
        command = commands.add_parser(stage.name, help=stage.help)
        if stage.arms is not None:
            command.add_argument("--arm", default="", help=f"an arm of the configuration, e.g. full{NEEDED}")
        if stage.name in (BOOTSTRAP, LABEL, TRAIN, EVALUATE):
            command.add_argument(
                "--one-process",
                action="store_true",
                help="start no workers and train one seed after the other, e.g. for a debugger; servers of engines "
                "stay processes of their own; results are the same",
            )
        if stage.name == TRAIN:
            command.add_argument("--dry-run", action="store_true", help="print the plan, do nothing")
            add_plan_arguments(command.add_argument_group("with --dry-run"))
        command.add_argument(
            "overrides",
            nargs="*",
            metavar="key=value",
            help="in a workspace of its own under these values; what is recorded stays as it is",
        )
        _add_levels(command)
        command.set_defaults(run=_stage, stage=stage, shown=shown, arm="", dry_run=False, one_process=False)
    _add_redivide(commands)
    _add_ls(commands)


def _add_redivide(commands: Subparsers[argparse.ArgumentParser]) -> None:
    about = (
        "let an unfinished run go on with the devices, the strategy and the batches that the configuration has now; "
        "its results are then equal to rounding, and no longer to the byte"
    )
    command = commands.add_parser(REDIVIDE, help=about, description=about)
    command.add_argument("--arm", required=True, help="an arm of the configuration, e.g. full")
    command.set_defaults(run=_redivide)


def _redivide(args: argparse.Namespace) -> int:
    from rlanything.stages.redivide import redivide

    config = configuration(args, engine=True, data=True)
    config.arm(args.arm)
    for change in redivide(config, args.root, args.arm, tell):
        print(change)
    print(
        f"`rlanything {of_arm(TRAIN, args.arm)}` goes on with it; the record of the run will name the change"
    )
    return 0


def _add_levels(command: argparse.ArgumentParser) -> None:
    """How much a stage prints: `runs.progress.ticker.LEVELS`; '' updates lines in a terminal."""
    levels = command.add_mutually_exclusive_group()
    for name, text in (("quiet", "no lines of progress"), ("verbose", "a line for every iteration")):
        levels.add_argument(
            f"--{name}", dest="level", action="store_const", const=name, default="", help=text
        )


def _progress(args: argparse.Namespace, root: Path) -> AbstractContextManager[None]:
    words = of_arm(args.stage.name, args.arm) if args.arm else args.stage.name
    found: AbstractContextManager[None] = args.shown(root, words, args.level, args.one_process)
    return found


def _add_ls(commands: Subparsers[argparse.ArgumentParser]) -> None:
    lister = commands.add_parser("ls", help="list the workspaces, what is set in each, and their runs")
    lister.add_argument("--json", action="store_true", help="as JSON")
    lister.set_defaults(run=_ls)


def _ls(args: argparse.Namespace) -> int:
    from rlanything.buffer.views.cli.output import print_page
    from rlanything.workspaces import listing

    if not places.is_project(args.project):
        raise ConfigError(
            f"{args.project.resolve()}: no project here or above, which has a {PARAMS} or an experiments/config.yaml; "
            "--root DIR names one"
        )
    print_page(listing.page(args.project), listing.text, args.json)
    return 0


def _stage(args: argparse.Namespace) -> int:
    from rlanything.planning import check, checkpoints, dvcfile
    from rlanything.workspaces import linked
    from rlanything.workspaces.unchanged import unchanged

    stage: Stage = args.stage
    real = not args.dry_run
    config = (
        composed(args)
        if args.overrides
        else configuration(args, engine=stage.engine, data=real, installed=real)
    )
    if by_dvc() and real and not args.overrides:  # by hand, nothing is recorded as of this dvc.yaml
        dvcfile.check(args.root, config)
    stage.check_needed(config)
    stage.check_arm(config, args.arm)
    if args.dry_run:
        return print_plan(args, config, [args.arm])
    if stage.name == TRAIN:
        refuse_arguments(args)
    if args.overrides:
        if stage.engine:
            check.packages(config)
        return _trial(args, stage, config)
    if stage.engine:
        check.machine(config)
        checkpoints.check(config, args.root)
    linked.require_folders(args.root, stage.name, args.arm)
    if stage.name in BEFORE_TRAINING:
        linked.require_own(args.root, stage.name)
    if args.within:
        linked.check(args.root, args.project, config, stage.name, args.arm)
    if not by_dvc():  # DVC would show it for every stage of an experiment
        say_uncommitted(params_file(args))
    with _progress(args, args.root), unchanged(stage, config, args.root, args.arm, params_file(args)):
        stage.work(config.in_one_process() if args.one_process else config, args.root, args.arm)
    return 0


def _trial(args: argparse.Namespace, stage: Stage, config: Config) -> int:
    """Run a stage in a workspace under the overrides, after the stages that it needs and that are not made yet.

    config: what the overrides give."""
    from rlanything.planning import check, checkpoints
    from rlanything.workspaces import linked, needed, trial
    from rlanything.workspaces.unchanged import unchanged

    place = trial.named(args.root, args.overrides, args.workspace or "")
    args.within = place.name
    needed.check(stage, config, place, args.arm, args.overrides, args.root)
    found = trial.prepare(args.root, params_file(args), args.overrides, args.workspace or "")
    if args.one_process:
        found = replace(found, config=found.config.in_one_process())
    tell(f"in workspace {found.name}: {' '.join(args.overrides)}")
    if stage.engine:
        check.check(found.config, found.root)
        check.machine(found.config)
        checkpoints.check(found.config, found.root)
    linked.require_folders(found.root, stage.name, args.arm)
    warn(found.config, found.root)
    with _progress(args, found.root):
        if stage.name != REPORT:  # it reads neither
            trial.make_inputs(found, stage.name)
        if stage.name in linked.MEASURING:
            linked.check_runs(found.root)
        if stage.name == REPORT:
            linked.check_evaluations(found.root)
        if stage.name not in BEFORE_TRAINING:
            with unchanged(stage, found.config, found.root, args.arm, found.root / PARAMS):
                stage.work(found.config, found.root, args.arm)
    tell(f"results: {found.root}   read them with: rlanything --workspace {found.name} COMMAND")
    return 0
