"""`rlanything buffer log` and `verify`: the events of a run, and whether its record is consistent."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import Any

from rlanything.buffer.views import commands
from rlanything.buffer.views.causes import Cause
from rlanything.buffer.views.cli.output import print_page
from rlanything.buffer.views.commands import Deep
from rlanything.buffer.views.terminal import Screen
from rlanything.core.adaptation import AcceptanceRule
from rlanything.core.printable import one_line
from rlanything.core.types import Direction, EventKind
from rlanything.parser import Subparsers

_BAND = re.compile(r"(\d*\.?\d+):(\d*\.?\d+)(?::(strict|inclusive|paired))?")
_RANGE = re.compile(r"(\d*)(:?)(\d*)")


def add_log(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add `buffer log`."""
    parser = commands.add_parser("log", help="what happened to the tasks, event by event")
    parser.add_argument("name", metavar="RUN", help="a run, RUN@ITERATION, or REVISION[:RUN]")
    parser.add_argument(
        "target", metavar="SLOT|TASK_ID_PREFIX", nargs="?", default="", help="only its events"
    )
    parser.add_argument("--kind", choices=[kind.value for kind in EventKind], help="only these events")
    parser.add_argument(
        "--direction", choices=[way.value for way in Direction], help="only rewrites that were to be so"
    )
    causes = [cause.value for cause in Cause]
    parser.add_argument(
        "--cause", choices=causes, help="only rejections with this cause, by the rule of params.yaml"
    )
    parser.add_argument(
        "--iterations",
        type=_range,
        default=(None, None),
        metavar="N|FROM:TO",
        help="only of these, both ends included; an end may be left out",
    )
    parser.add_argument("--by", default="", metavar="PROPOSER", help="only what this one proposed")
    parser.add_argument("--grep", default="", metavar="TEXT", help="in instruction, critic, reason or reply")
    parser.add_argument("--json", action="store_true", help="as JSON, complete")
    parser.set_defaults(run=_answer_log)


def add_verify(commands: Subparsers[argparse.ArgumentParser], deep: Deep) -> None:
    """Add `buffer verify`. `deep`: what `--deep` does besides."""
    parser = commands.add_parser(
        "verify", help="compute everything again; exit 1 when something does not hold"
    )
    parser.add_argument("name", metavar="RUN", help="a run, or REVISION[:RUN]")
    rules = (
        "the band and rule of its decisions, e.g. 0.2:0.8 or 0.2:0.8:inclusive; default: as in params.yaml"
    )
    parser.add_argument("--band", type=_band, metavar="LOW:HIGH[:RULE]", help=rules)
    parser.add_argument(
        "--deep",
        action="store_true",
        help="also replay the run: signals, decisions and metrics from its rollouts",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(run=_answer_verify, replay=deep)


def _answer_log(args: argparse.Namespace) -> int:
    from rlanything.buffer.views.history.log import Filter, log_text

    kind = EventKind(args.kind) if args.kind else None
    direction = Direction(args.direction) if args.direction else None
    cause = Cause(args.cause) if args.cause else None
    first, last = args.iterations
    wanted = Filter(kind, direction, first, last, args.by, args.grep, cause)
    print_page(commands.log(args.name, args.target, wanted=wanted, root=args.root), log_text, args.json)
    return 0


def _answer_verify(args: argparse.Namespace) -> int:
    page = commands.verify(args.name, rule=args.band, deep=args.replay if args.deep else None, root=args.root)
    print_page(page, _verify_text, args.json)
    return 0 if page["ok"] else 1


def _verify_text(page: Mapping[str, Any], _: Screen) -> str:
    """One line a check; below a broken one, its first broken record."""
    lines = [f"{page['name']}: {'every record holds' if page['ok'] else 'BROKEN'}"]
    for check in page["checks"]:
        if check["problem"]:
            lines += [f"  BROKEN  {check['check']}", f"          {one_line(check['problem'])}"]
        else:
            count = check["note"] if check["records"] is None else check["records"]
            lines.append(f"  {'-' if check['records'] is None else 'ok':<6}  {check['check']} ({count})")
    return "\n".join(lines) + "\n"


def _range(text: str) -> tuple[int | None, int | None]:
    match = _RANGE.fullmatch(text)
    if not match or not (match[1] or match[3]):
        raise argparse.ArgumentTypeError(f"{text!r} is neither an iteration nor a range such as 3:7")
    first, last = (int(part) if part else None for part in (match[1], match[3]))
    if first is not None and last is not None and last < first:
        raise argparse.ArgumentTypeError(f"{text!r} ends before it begins")
    return (first, last) if match[2] else (first, first)


def _band(text: str) -> AcceptanceRule:
    match = _BAND.fullmatch(text)
    if not match or not 0 <= float(match[1]) < float(match[2]) <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no band such as 0.2:0.8 or 0.2:0.8:inclusive")
    acceptance: Any = match[3] or "strict"
    return AcceptanceRule(float(match[1]), float(match[2]), acceptance)
