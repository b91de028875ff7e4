"""The command `livebench`: measures answers with LiveBench's own grader. The coding environment does it.

Nothing here names that environment: its configuration does, and its package holds a module `livebench.command`.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from typing import Any

from rlanything.config import ConfigError

ENVIRONMENT = "coding"
"""The option of the group `env` whose package has the command."""
FOLDER = Path(".rla/livebench")
DATA = Path("evaluation/livebench")


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `livebench setup` and `livebench grade` to the command line."""
    group = commands.add_parser("livebench", help="grade programs with LiveBench's own grader")
    actions = group.add_subparsers(title="actions", required=True, metavar="ACTION")
    setup = actions.add_parser("setup", help="make the grader's own virtual environment")
    setup.add_argument("--repository", type=Path, required=True, metavar="DIR", help="a clone of LiveBench")
    setup.set_defaults(run=_setup)
    grade = actions.add_parser("grade", help="grade a model's answers; goes on where it was stopped")
    add = grade.add_argument
    add(
        "--questions", type=Path, required=True, nargs="+", metavar="FILE", help="question.jsonl of each task"
    )
    add(
        "--answers",
        type=Path,
        required=True,
        nargs="+",
        metavar="FILE",
        help="LiveBench's model_answer files",
    )
    add("--model", required=True, metavar="NAME", help="name of the model in the judgments")
    add("--release", required=True, metavar="DATE", help="release of LiveBench, e.g. 2024-11-25")
    add("--grader", choices=("livebench", "ours", "both"), default="livebench", help="default: livebench")
    add("--workers", type=int, default=2, metavar="N", help="answers graded at a time; at most one a core")
    add("--data", type=Path, metavar="DIR", help=f"where judgments go; default: {DATA}")
    grade.set_defaults(run=_grade)
    for action in (setup, grade):
        action.add_argument("--folder", type=Path, metavar="DIR", help=f"the grader's; default: {FOLDER}")


def _setup(args: argparse.Namespace) -> int:
    code: int = _command(args.root).setup(args.repository, args.folder or args.root / FOLDER)
    return code


def _grade(args: argparse.Namespace) -> int:
    if args.workers < 1:
        raise ConfigError(f"--workers {args.workers}: must be at least 1")
    code: int = _command(args.root).grade_answers(
        args.questions,
        args.answers,
        args.model,
        args.release,
        args.folder or args.root / FOLDER,
        args.data or args.root / DATA,
        args.grader,
        args.workers,
    )
    return code


def _command(root: Path) -> Any:
    """The module that does it, in the package of the configured environment's class."""
    from rlanything.stages.compose import compose

    target = str(compose([f"env={ENVIRONMENT}"], root)["env"]["_target_"])
    package = target.rpartition(".")[0].rpartition(".")[0]
    try:
        return importlib.import_module(f"{package}.livebench.command")
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"env._target_ = {target!r}: its package has no command livebench ({error})"
        ) from None
