"""The commands of this package: `provenance`, `replay`, `first-difference` and `verify-repro`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rlanything.config import Config
from rlanything.core.errors import ConfigError
from rlanything.core.printable import safe_lines
from rlanything.files.project import PARAMS
from rlanything.parser import Subparsers


def add_commands(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the commands.

    Each sets `run`: a function from the parsed arguments, which include `root` and `params`, to an exit code.
    """
    _add_provenance(commands)
    _add_replay(commands)
    _add_difference(commands)
    _add_verify(commands)


def _add_provenance(commands: Subparsers[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "provenance", help="where a run came from, and whether today's environment matches"
    )
    parser.add_argument(
        "run_name",
        metavar="RUN",
        help="an arm or a run, e.g. full or runs/full/seed-0; base: the models that all begin with",
    )
    parser.add_argument("--json", action="store_true", help="as JSON, complete")
    parser.add_argument("--exit-code", action="store_true", help="exit 1 when something differs")
    parser.set_defaults(run=_provenance)


def _add_replay(commands: Subparsers[argparse.ArgumentParser]) -> None:
    about = "compute signals, decisions and metrics again from the stored rollouts; exit 1 when they are not as stored"
    parser = commands.add_parser("replay", help=about, description=about)
    parser.add_argument("run_name", metavar="RUN", help="an arm or a run, e.g. full or runs/full/seed-0")
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="key=value",
        help="what if, e.g. signals.lambda=0.5 adaptation.alpha_low=0.3",
    )
    parser.add_argument(
        "--play",
        action="store_true",
        help="also play every episode again with the sampled tokens; needs environment, prompts and tokenizers",
    )
    parser.add_argument("--json", action="store_true", help="as JSON, complete")
    parser.set_defaults(run=_replay)


def _replay(args: argparse.Namespace) -> int:
    try:
        return _reports(args)
    except (
        KeyboardInterrupt
    ):  # the command line's own words are those of commands that keep what they have done
        print("interrupted; a replay writes nothing, so the same command begins again", file=sys.stderr)
        return 130


def _reports(args: argparse.Namespace) -> int:
    """Replay the runs, and print a report of each."""
    from rlanything.repro import replay_report
    from rlanything.repro.played.own import require_own_run

    reports, root = [], args.root.resolve()
    for folder in replay_report.folders(args.run_name, root):
        if args.play:
            require_own_run(folder, root)
        reports.append(replay_report.replay_run(folder, args.overrides, play=args.play))
        if not args.json:
            print(replay_report.render(reports[-1]), end="", flush=True)
    if args.json:
        print(json.dumps([report.to_json() for report in reports], indent=2))
    return 1 if any(report.problem for report in reports) else 0


def replayed(folder: Path) -> tuple[int, str | None]:
    """Replay a run. Returns the number of replayed episodes, and the first difference from the stored run, or None."""
    from rlanything.repro import replay_report

    report = replay_report.replay_run(folder, [])
    return report.episodes, report.problem or None


def _add_difference(commands: Subparsers[argparse.ArgumentParser]) -> None:
    about = "where two runs, or the results of two projects, first differ; exit 1 when they do"
    parser = commands.add_parser("first-difference", help=about, description=about)
    for name in ("first", "second"):
        parser.add_argument(
            name, metavar=name.upper(), help="the folder of a run or of a project, e.g. runs/full/seed-0"
        )
    parser.set_defaults(run=_difference)


def _difference(args: argparse.Namespace) -> int:
    from rlanything.buffer.views.cli.output import print_text
    from rlanything.repro import difference

    root = args.root.resolve()
    trees = difference.folders(difference.named(args.first, root), difference.named(args.second, root))
    found = difference.first_difference(*trees)
    count = len(trees[0].names())
    if not found and not count:
        raise ConfigError(f"{args.first}, {args.second}: neither has results to compare")
    print_text(f"{safe_lines(str(found))}\n" if found else f"the same {count} files, byte for byte\n")
    return 1 if found else 0


def _add_verify(commands: Subparsers[argparse.ArgumentParser]) -> None:
    about = "run the whole pipeline again from nothing and compare every output; exit 1 when one differs"
    parser = commands.add_parser("verify-repro", help=about, description=about)
    parser.add_argument(
        "revision", nargs="?", metavar="REV", help="a git revision; default: the project on disk"
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="keep the second copy, even when everything is the same; the next verification makes it anew",
    )
    parser.set_defaults(run=_verify)


def _verify(args: argparse.Namespace) -> int:
    from rlanything.buffer.views.cli.output import print_text
    from rlanything.repro import verify

    outcome = verify.verify(
        args.root.resolve(), args.revision, lambda words: print(words, flush=True), keep=args.keep
    )
    print_text(safe_lines(verify.text(outcome)))
    return 0 if outcome.same else 1


def _provenance(args: argparse.Namespace) -> int:
    from rlanything.buffer.views.cli.output import json_text, print_text
    from rlanything.repro.origin import names, record, text

    root = args.root.resolve()
    found = names.of(args.run_name, _config(args, root), root)
    print_text(json_text(found) if args.json else safe_lines(text.text(found)))
    return 1 if args.exit_code and not record.same(found) else 0


def _config(args: argparse.Namespace, root: Path) -> Config:
    from rlanything.planning import check

    return check.read(args.params or root / PARAMS, root, engine=False)
