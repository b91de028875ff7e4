"""The command `livebench`: answer LiveBench's coding questions with a policy, grade the answers."""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlanything.core.errors import ConfigError
from rlanything.core.exams import GradingOrder
from rlanything.files.project import PARAMS
from rlanything.parser import Subparsers

if TYPE_CHECKING:
    from rlanything.core.exams import Exam

EXAM = Path("experiments/livebench.yaml")
FOLDER = Path(".rla/livebench")
DATA = Path("evaluation/livebench")


def add_commands(commands: Subparsers[argparse.ArgumentParser]) -> None:
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


def _add_answer(actions: Subparsers[argparse.ArgumentParser]) -> None:
    answer = actions.add_parser(
        "answer", help="sample a program for every question; goes on where it was stopped"
    )
    add = answer.add_argument
    questions = "question.jsonl of each task"
    add("--questions", type=Path, required=True, nargs="+", metavar="FILE", help=questions)
    add("--arm", required=True, help="whose policy answers: an arm of the configuration, or `base`")
    add("--seed", type=int, default=0, metavar="N", help="which run of the arm; default: 0")
    add("--model", required=True, metavar="NAME", help="name of the model, and of the file of its answers")
    add(
        "--release",
        metavar="DATE",
        help="release of LiveBench; default: all questions not removed",
    )
    add("--data", type=Path, metavar="DIR", help=f"where answers go; default: {DATA}")
    answer.set_defaults(run=_answer)


def _answer(args: argparse.Namespace) -> int:
    """Run `livebench answer`. Returns exit code 2 when some questions got no answer."""
    from rlanything.exams import answering
    from rlanything.planning import check

    root = args.root.resolve()
    config = check.read(args.params or root / PARAMS, root)
    check.machine(config)
    exam, env = _exam(root)
    if config.env["_target_"] != env["_target_"]:
        raise ConfigError(f"env._target_ = {config.env['_target_']!r}: LiveBench is for {env['_target_']!r}")
    lost = answering.answer_exam(
        exam,
        config,
        root,
        args.arm,
        args.seed,
        questions=args.questions,
        release=None if args.release is None else _date(args.release),
        model=args.model,
        data=args.data or root / DATA,
    )
    return 2 if lost else 0


def _setup(args: argparse.Namespace) -> int:
    _exam(args.root)[0].setup(args.repository, args.folder or args.root / FOLDER)
    return 0


def _grade(args: argparse.Namespace) -> int:
    if args.workers < 1:
        raise ConfigError(f"--workers {args.workers}: must be at least 1")
    exam, env = _exam(args.root)
    env |= _configured(args, env["_target_"])
    named = {"backend": args.backend, "image": args.image, "trusted": None}
    return exam.grade(
        GradingOrder(
            questions=args.questions,
            answers=args.answers,
            model=args.model,
            release=_date(args.release),
            folder=args.folder or args.root / FOLDER,
            data=args.data or args.root / DATA,
            grader=args.grader,
            workers=args.workers,
            ignore_missing=args.ignore_missing_answers,
            sandbox={key: value or env[key] for key, value in named.items()},
        )
    )


def _date(text: str) -> date:
    """A release as a date. Raises `ConfigError` for anything else."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"--release {text!r}: must be a date as year-month-day, e.g. 2024-11-25") from None


def _configured(args: argparse.Namespace, target: str) -> dict[str, Any]:
    """The section `env` of the configuration; empty when there is none, or when its class is not `target`."""
    from rlanything.config import load

    path = args.params or args.root / PARAMS
    env = load(path).env if args.params or path.is_file() else {}
    return env if env.get("_target_") == target else {}


def _exam(root: Path) -> tuple[Exam, dict[str, Any]]:
    """The exam that experiments/livebench.yaml names, and the section `env` that experiments/ declares for it."""
    from rlanything import targets
    from rlanything.core.exams import Exam
    from rlanything.files.yaml_file import read_mapping
    from rlanything.planning.compose import compose

    section = read_mapping(root / EXAM)
    env: dict[str, Any] = compose([f"env={section.pop('env')}"], root)["env"]
    return targets.instantiate(section, "livebench", Exam), env
