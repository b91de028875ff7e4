"""`rlanything buffer log` and `rlanything buffer verify`: what happened in a run, and whether its record holds."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import Any

from rlanything.buffer import commands
from rlanything.buffer.history import Filter, log_text
from rlanything.buffer.output import print_json, print_text, report, screen
from rlanything.buffer.render import one_line
from rlanything.buffer.source import Band
from rlanything.core.types import Direction, EventKind

Subparsers = argparse._SubParsersAction  # argparse has no public name for it
_BAND = re.compile(r"(\d*\.?\d+):(\d*\.?\d+)(?::(strict|inclusive|paired))?")
_RANGE = re.compile(r"(\d*)(:?)(\d*)")


def add_log(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add `buffer log`."""
    parser = commands.add_parser("log", help="what happened to the tasks, event by event")
    parser.add_argument("name", metavar="RUN", help="a run, RUN@ITERATION, or REVISION[:RUN]")
    parser.add_argument("target", metavar="SLOT|TASK_ID_PREFIX", nargs="?", default="")
    parser.add_argument("--kind", choices=[kind.value for kind in EventKind])
    parser.add_argument("--direction", choices=[way.value for way in Direction])
    parser.add_argument("--iterations", type=_range, default=(None, None), metavar="N|FROM:TO")
    parser.add_argument("--by", default="", metavar="PROPOSER", help="only what this one proposed")
    parser.add_argument("--grep", default="", metavar="TEXT", help="in instruction, critic, reason or reply")
    parser.add_argument("--json", action="store_true", help="as JSON, complete")
    parser.set_defaults(run=_run_log)


def add_verify(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add `buffer verify`."""
    parser = commands.add_parser(
        "verify", help="compute everything again; exit 1 when something does not hold"
    )
    parser.add_argument("name", metavar="RUN", help="a run, or REVISION[:RUN]")
    rules = (
        "the band and rule of its decisions, e.g. 0.2:0.8 or 0.2:0.8:inclusive; default: as in params.yaml"
    )
    parser.add_argument("--band", type=_band, metavar="LOW:HIGH[:RULE]", help=rules)
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(run=_run_verify)


def verify_text(page: Mapping[str, Any]) -> str:
    """A line a check; below a broken one, its first broken record."""
    lines = [f"{page['name']}: {'every record holds' if page['ok'] else 'BROKEN'}"]
    for check in page["checks"]:
        if check["problem"]:
            lines += [f"  BROKEN  {check['check']}", f"          {one_line(check['problem'])}"]
        else:
            lines.append(f"  ok      {check['check']} ({check['records']})")
    return "\n".join(lines) + "\n"


def _run_log(args: argparse.Namespace) -> int:
    def answer() -> int:
        first, last = args.iterations
        wanted = Filter(
            EventKind(args.kind) if args.kind else None,
            Direction(args.direction) if args.direction else None,
            first,
            last,
            args.by,
            args.grep,
        )
        page = commands.log(args.name, args.target, wanted=wanted, root=args.root)
        if args.json:
            print_json(page)
        else:
            print_text(log_text(page, screen()))
        return 0

    return report(answer)


def _run_verify(args: argparse.Namespace) -> int:
    def answer() -> int:
        page = commands.verify(args.name, band=args.band, root=args.root)
        if args.json:
            print_json(page)
        else:
            print_text(verify_text(page))
        return 0 if page["ok"] else 1

    return report(answer)


def _range(text: str) -> tuple[int | None, int | None]:
    match = _RANGE.fullmatch(text)
    if not match or not (match[1] or match[3]):
        raise argparse.ArgumentTypeError(f"{text!r} is neither an iteration nor a range such as 3:7")
    first, last = (int(part) if part else None for part in (match[1], match[3]))
    return (first, last) if match[2] else (first, first)


def _band(text: str) -> Band:
    match = _BAND.fullmatch(text)
    if not match or not 0 <= float(match[1]) < float(match[2]) <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no band such as 0.2:0.8 or 0.2:0.8:inclusive")
    return Band(float(match[1]), float(match[2]), match[3] or "strict")
