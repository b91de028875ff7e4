"""`python -m envs.coding.sandbox check | bench | image`: what works here, how fast, and an image for `docker`."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from envs.coding.sandbox.bench import measure
from envs.coding.sandbox.check import check
from envs.coding.sandbox.container import connect
from envs.coding.sandbox.image import TAG, make
from envs.coding.sandbox.types import SandboxError


def main() -> int:
    """Run a command; the exit code."""
    asked = _parser().parse_args()
    try:
        code: int = asked.run(asked)
    except SandboxError as error:
        print(error, file=sys.stderr)
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m envs.coding.sandbox", description=__doc__)
    commands = parser.add_subparsers(required=True)
    checks = commands.add_parser("check", help="which back ends work here, and why the others do not")
    checks.set_defaults(run=_check)
    benches = commands.add_parser("bench", help="tests per second, beside fork-and-exec in the harness")
    benches.set_defaults(run=_bench)
    benches.add_argument("--programs", type=_positive, default=40, help="programs a round, 8 tests each (40)")
    benches.add_argument("--rounds", type=_positive, default=5, help="rounds; medians are printed (5)")
    images = commands.add_parser(
        "image", help="import an image of this machine's interpreter over Docker's API"
    )
    images.set_defaults(run=_image)
    images.add_argument("--tag", default=TAG)
    for command in (checks, benches):
        command.add_argument("--json", action="store_true", help="print JSON")
        command.add_argument("--image", help="what the back end docker runs (python:3.11-slim)")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer above 0")
    return int(text)


def _options(asked: argparse.Namespace) -> dict[str, dict[str, Any]]:
    return {"docker": {"image": asked.image}}


def _check(asked: argparse.Namespace) -> int:
    """Exit code 0 when a back end works that isolates."""
    found = check(_options(asked))
    if asked.json:
        print(json.dumps(found, indent=1))
    else:
        for name, result in found.items():
            detail = f"starts in {result['start_s']} s" if result["works"] else result["reason"]
            print(f"{name:<11} {'works' if result['works'] else 'does not work'}: {detail}")
        print("subprocess isolates nothing: use it only for programs that you would run yourself.")
    return 0 if found["bwrap"]["works"] or found["docker"]["works"] else 1


def _bench(asked: argparse.Namespace) -> int:
    found = measure(asked.programs, asked.rounds, _options(asked))
    if asked.json:
        print(json.dumps(found, indent=1))
        return 0
    print(f"{'method':<14} {'tests/s':>8} {'ratio':>6} {'CPU ms a test':>14}")
    for name, row in found.items():
        cpu = "-" if row["cpu_ms"] is None else row["cpu_ms"]
        print(f"{name:<14} {row['tests_per_s']:>8} {row['ratio']:>6} {cpu:>14}")
    return 0


def _image(asked: argparse.Namespace) -> int:
    client = connect()
    try:
        print(make(client, asked.tag))
    finally:
        client.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
