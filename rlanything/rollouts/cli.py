"""The command `rlanything rollouts show`."""

from __future__ import annotations

import argparse
from pathlib import Path

Subparsers = argparse._SubParsersAction  # argparse has no public name for it
_ABOUT = (
    "One stored rollout: what the policy read and wrote, every vote or test of the reward model, the rewards and "
    "advantages that follow, and what of it trained. Without a selection, a rollout of the last iteration is shown, "
    "of a task whose rollouts differ in their outcome."
)


def add_commands(commands: Subparsers[argparse.ArgumentParser]) -> Subparsers[argparse.ArgumentParser]:
    """Add `rollouts`, and give what takes its commands: rooms above this one add some.

    Commands set `run`: from parsed arguments, which include `root`, to an exit code."""
    rollouts = commands.add_parser("rollouts", help="what was tried, said about it and learnt from it")
    actions = rollouts.add_subparsers(title="commands", required=True, metavar="COMMAND")
    show = actions.add_parser("show", help="one rollout: texts, votes or tests, rewards", description=_ABOUT)
    show.add_argument("run_name", metavar="RUN", help="an arm, a run or its folder, e.g. full/seed-0")
    for name, text in (
        ("iteration", "default: the last"),
        ("slot", "of the task buffer"),
        ("rollout", "of the task, from 0"),
    ):
        show.add_argument(f"--{name}", type=int, metavar="N", help=text)
    show.add_argument(
        "--proposal", action="store_true", help="the rewrite that was tried, where a slot has two tasks"
    )
    show.add_argument("--prompts", action="store_true", help="also what the policy read, token for token")
    show.add_argument("--json", action="store_true", help="as JSON, complete")
    show.set_defaults(run=_show)
    return actions


def _show(args: argparse.Namespace) -> int:
    from rlanything.buffer.views.cli.output import print_page
    from rlanything.rollouts.text import rollout_text

    page = show(
        args.run_name,
        iteration=args.iteration,
        slot=args.slot,
        rollout=args.rollout,
        proposal=args.proposal,
        root=args.root.resolve(),
    )
    print_page(page, rollout_text(prompts=args.prompts), args.json)
    return 0


def show(
    name: str,
    *,
    iteration: int | None = None,
    slot: int | None = None,
    rollout: int | None = None,
    proposal: bool = False,
    root: Path = Path(),
) -> dict[str, object]:
    """The page of one rollout of the run `name`, for notebooks and for the command. Raises `ConfigError`."""
    from rlanything.rollouts import page, runs, select

    run, others = runs.find(name, root)
    chosen = select.choose(run, iteration, slot, rollout, proposal=proposal)
    return page.rollout_page(run, chosen, others)
