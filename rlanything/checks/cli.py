"""The commands of this room: `check ladder`, `study`, `pool`, `selection`, `corruption` and `adaptation`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from rlanything.core.errors import ConfigError
from rlanything.files.project import PARAMS
from rlanything.parser import Subparsers

Exclusive = argparse._MutuallyExclusiveGroup  # argparse has no public name for it


def add_checks(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command. Each check sets `run`: from parsed arguments, with `root` and `params`, to an exit code."""
    check = commands.add_parser(
        "check", help="measure an experiment as a whole: whether arms can differ, what trained pairs choose"
    )
    checks = check.add_subparsers(title="checks", required=True, metavar="CHECK")
    ladder = checks.add_parser(
        "ladder", help="judges of declared accuracy in place of the reward model; goes on after a kill"
    )
    _add_arguments(ladder, "ladder", 2, "seeds at once")
    ladder.set_defaults(run=_ladder)
    study = checks.add_parser("study", help="hypotheses, which are registered first; goes on after a kill")
    instead = _add_arguments(study, "study", 2, "seeds at once")
    instead.add_argument(
        "--register", action="store_true", help="write down what is declared, and run nothing; commit it"
    )
    instead.add_argument(
        "--page", action="store_true", help="draw the page of a published study again from its own folder"
    )
    study.add_argument(
        "--registered",
        action="store_true",
        help="run it under the configuration that was registered, whatever experiments/ says today",
    )
    study.set_defaults(run=_study)
    pooling = checks.add_parser(
        "pool", help="what the published checks say together about the difference of two arms"
    )
    _add_file(pooling, "pool")
    pooling.set_defaults(run=_pooling)
    selection = checks.add_parser(
        "selection",
        help="Best of N and other choices among a finished policy's programs by its reward model's tests",
    )
    _add_arguments(selection, "selection", 1, "pairs of models at once")
    selection.set_defaults(run=_selection)
    corruption = checks.add_parser(
        "corruption", help="what finished reward models say about trajectories with a damaged step"
    )
    _add_arguments(corruption, "corruption", 1, "reward models at once")
    corruption.set_defaults(run=_corruption)
    adaptation = checks.add_parser(
        "adaptation", help="what the rewrites of finished runs did to the tasks, on fresh rollouts"
    )
    _add_arguments(adaptation, "adaptation", 1, "runs at once")
    adaptation.set_defaults(run=_adaptation)


def _add_arguments(parser: argparse.ArgumentParser, name: str, workers: int, of: str) -> Exclusive:
    parser.add_argument("--workers", type=int, default=workers, metavar="N", help=f"{of}; default: {workers}")
    return _add_file(parser, name)


def _add_file(parser: argparse.ArgumentParser, name: str) -> Exclusive:
    """Add the declaration and `--dry-run`. Returns what can be asked for instead of running the check."""
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help=f"default: experiments/check/{name}.yaml"
    )
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--dry-run", action="store_true", help="check the file and print what would run")
    return instead


def _ladder(args: argparse.Namespace) -> int:
    from rlanything.checks.ladder import command

    root, params = _places(args)
    run = command.print_ladder if args.dry_run else command.run_ladder
    run(args.file or root / command.LADDER, root, params, args.workers)
    return 0


def _study(args: argparse.Namespace) -> int:
    from rlanything.checks.study import command

    root, params = _places(args)
    file = args.file or root / command.STUDY
    if args.registered and args.page:
        raise ConfigError("--registered: not with --page, which reads the published study")
    if args.register:
        command.register_study(file, root, params, args.registered)
        return 0
    if args.page:
        command.draw_study(file, root)
        return 0
    run = command.print_study if args.dry_run else command.run_study
    run(file, root, params, args.workers, args.registered)
    return 0


def _pooling(args: argparse.Namespace) -> int:
    from rlanything.checks.pooling import command

    root, params = _places(args)
    run = command.print_pooling if args.dry_run else command.run_pooling
    run(args.file or root / command.POOL, root, params)
    return 0


def _selection(args: argparse.Namespace) -> int:
    from rlanything.checks.selection import command

    return _of_runs(args, command.SELECTION, command.run_selection, command.print_selection)


def _corruption(args: argparse.Namespace) -> int:
    from rlanything.checks.corruption import command

    return _of_runs(args, command.CORRUPTION, command.run_corruption, command.print_corruption)


def _adaptation(args: argparse.Namespace) -> int:
    from rlanything.checks.adaptation import command

    return _of_runs(args, command.ADAPTATION, command.run_adaptation, command.print_adaptation)


def _of_runs(
    args: argparse.Namespace, default: Path, run: Callable[..., object], show: Callable[..., object]
) -> int:
    """A check of the project's finished runs."""
    from rlanything.planning import check

    root, params = _places(args)
    config = check.read(params, root)
    if not args.dry_run:
        check.machine(config)
    (show if args.dry_run else run)(args.file or root / default, root, config, args.workers)
    return 0


def _places(args: argparse.Namespace) -> tuple[Path, Path]:
    """The project, and its configuration."""
    root = args.root.resolve()
    return root, (args.params or root / PARAMS).resolve()
