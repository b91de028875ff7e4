"""The command `env init`."""

from __future__ import annotations

import argparse

from rlanything.parser import Subparsers

NEXT = """\
It works as it is: dark corridors with lamps. envs/{name}/README.md says what to change first. Next:
  python -m pytest tests/envs/{name}
  rlanything config check env={name} scale=smoke
  rlanything train --arm full env={name} scale=smoke"""


def add_env(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add `env init` to the command line."""
    group = commands.add_parser("env", help="make an environment of your own")
    actions = group.add_subparsers(title="actions", required=True, metavar="ACTION")
    init = actions.add_parser(
        "init", help="make a small environment that works, with its tests, to be changed"
    )
    init.add_argument(
        "name", metavar="NAME", help="of its package in envs/: lower-case letters, digits and _"
    )
    init.set_defaults(run=_init)


def _init(args: argparse.Namespace) -> int:
    from rlanything.scaffold.environment import make_environment

    for path in make_environment(args.root, args.name):
        print(f"{path}: written")
    print(NEXT.format(name=args.name))
    return 0
