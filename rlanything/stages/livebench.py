"""The command `livebench`: answers LiveBench's coding questions with a policy, grades answers with its own grader.

Nothing here names the coding environment: its configuration does, and its package holds the modules
`livebench.command`, which grades, and `livebench.answering`, which knows questions and answers.
"""

from __future__ import annotations

import argparse
import importlib
from datetime import date
from pathlib import Path
from typing import Any

from rlanything.config import ConfigError

ENVIRONMENT = "coding"
"""The option of the group `env` whose package has the command."""
FOLDER = Path(".rla/livebench")
DATA = Path("evaluation/livebench")


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `livebench setup`, `livebench answer` and `livebench grade` to the command line."""
    group = commands.add_parser("livebench", help="answer LiveBench's coding questions, grade the answers")
    actions = group.add_subparsers(title="actions", required=True, metavar="ACTION")
    setup = actions.add_parser("setup", help="make the grader's own virtual environment")
    setup.add_argument("--repository", type=Path, required=True, metavar="DIR", help="a clone of LiveBench")
    setup.set_defaults(run=_setup)
    _add_answer(actions)
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
    add("--backend", metavar="NAME", help="sandbox of our grader; default: env.backend of the configuration")
    add("--image", metavar="NAME", help="image of its containers; default: env.image of the configuration")
    add("--workers", type=int, default=2, metavar="N", help="answers graded at a time; at most one a core")
    add("--data", type=Path, metavar="DIR", help=f"where judgments go; default: {DATA}")
    missing = "score the answers that there are, and name the questions without one"
    add("--ignore-missing-answers", action="store_true", help=missing)
    grade.set_defaults(run=_grade)
    for action in (setup, grade):
        action.add_argument("--folder", type=Path, metavar="DIR", help=f"the grader's; default: {FOLDER}")


def _add_answer(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    answer = actions.add_parser(
        "answer", help="sample a program for every question; goes on where it was stopped"
    )
    add = answer.add_argument
    questions = "question.jsonl of each task"
    add("--questions", type=Path, required=True, nargs="+", metavar="FILE", help=questions)
    add("--arm", required=True, help="whose policy answers: an arm of the configuration, or `base`")
    add("--seed", type=int, default=0, metavar="N", help="which run of the arm; default: 0")
    add(
        "--model", required=True, metavar="NAME", help="name of the model: of the file that its answers go to"
    )
    add(
        "--release",
        metavar="DATE",
        help="release of LiveBench; default: whatever was not removed",
    )
    add("--data", type=Path, metavar="DIR", help=f"where answers go; default: {DATA}")
    answer.set_defaults(run=_answer)


def _answer(args: argparse.Namespace) -> int:
    """Exit code 2: some questions got no answer."""
    from rlanything.stages import check, livebenchanswer

    root = args.root.resolve()
    config = check.read(args.params or root / "params.yaml", root)
    lost = livebenchanswer.run(
        config,
        root,
        args.arm,
        args.seed,
        package=_module(config.env["_target_"], "answering"),
        questions=args.questions,
        release=None if args.release is None else _date(args.release),
        model=args.model,
        data=args.data or root / DATA,
    )
    return 2 if lost else 0


def _setup(args: argparse.Namespace) -> int:
    command = _module(_shipped(args.root)["_target_"], "command")
    code: int = command.setup(args.repository, args.folder or args.root / FOLDER)
    return code


def _grade(args: argparse.Namespace) -> int:
    if args.workers < 1:
        raise ConfigError(f"--workers {args.workers}: must be at least 1")
    release, env = _date(args.release), _environment(args)
    sandbox = {key: getattr(args, key, None) or env[key] for key in ("backend", "image", "trusted")}
    code: int = _module(env["_target_"], "command").grade_answers(
        args.questions,
        args.answers,
        args.model,
        release,
        args.folder or args.root / FOLDER,
        args.data or args.root / DATA,
        args.grader,
        args.workers,
        args.ignore_missing_answers,
        sandbox,
    )
    return code


def _date(text: str) -> date:
    """A release as a date. Raises `ConfigError` for anything else."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"--release {text!r}: must be a date as year-month-day, e.g. 2024-11-25") from None


def _environment(args: argparse.Namespace) -> dict[str, Any]:
    """The section `env` of the configuration where that is of this environment, else as experiments/ has it."""
    from rlanything.config import load

    path, shipped = args.params or args.root / "params.yaml", _shipped(args.root)
    if args.params or path.is_file():
        env = load(path).env
        if env["_target_"] == shipped["_target_"]:
            return shipped | env
    return shipped


def _shipped(root: Path) -> dict[str, Any]:
    from rlanything.stages.compose import compose

    env: dict[str, Any] = compose([f"env={ENVIRONMENT}"], root)["env"]
    return env


def _module(target: str, name: str) -> Any:
    """The module `livebench.<name>` in the package of an environment's class. Raises `ConfigError`."""
    package = target.rpartition(".")[0].rpartition(".")[0]
    try:
        return importlib.import_module(f"{package}.livebench.{name}")
    except ModuleNotFoundError as error:
        if not str(error.name).startswith(package):  # something that the module needs is not installed
            raise
        raise ConfigError(
            f"env._target_ = {target!r}: its package knows nothing of LiveBench ({error}); env=coding does"
        ) from None
