"""`python -m envs.coding.sandbox check | image`: which back ends work here, and an image for `docker`."""

from __future__ import annotations

import argparse
import json
import sys

from envs.coding.sandbox.backends.container import connect
from envs.coding.sandbox.backends.image import TAG, make
from envs.coding.sandbox.check import check
from envs.coding.sandbox.types import SandboxError


def main() -> int:
    """Run a command; the exit code."""
    parser = argparse.ArgumentParser("python -m envs.coding.sandbox", description=__doc__)
    commands = parser.add_subparsers(required=True)
    checks = commands.add_parser("check", help="which back ends work here, and why the others do not")
    checks.add_argument("--json", action="store_true", help="print JSON")
    checks.add_argument("--image", help="what the back end docker runs (python:3.11-slim)")
    checks.set_defaults(run=_check)
    images = commands.add_parser(
        "image", help="import an image of this machine's interpreter over Docker's API"
    )
    images.add_argument("--tag", default=TAG)
    images.set_defaults(run=_image)
    asked = parser.parse_args()
    try:
        code: int = asked.run(asked)
    except SandboxError as error:
        print(error, file=sys.stderr)
        return 1
    return code


def _check(asked: argparse.Namespace) -> int:
    """Exit code 0 when a back end works that isolates."""
    found = check({"docker": {"image": asked.image}})
    if asked.json:
        print(json.dumps(found, indent=1))
    else:
        for name, result in found.items():
            detail = f"starts in {result['start_s']} s" if result["works"] else result["reason"]
            print(f"{name:<11} {'works' if result['works'] else 'does not work'}: {detail}")
        print("subprocess isolates nothing: use it only for programs that you would run yourself.")
    return 0 if found["bwrap"]["works"] or found["docker"]["works"] else 1


def _image(asked: argparse.Namespace) -> int:
    client = connect()
    try:
        print(make(client, asked.tag))
    finally:
        client.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
