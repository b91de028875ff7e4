"""The commands `rlanything rollouts show`, `votes` and `paid`."""

from __future__ import annotations

import argparse
from pathlib import Path

from rlanything.parser import Subparsers

_ABOUT = (
    "One stored rollout: what the policy read and wrote, every vote or test of the reward model, the rewards and "
    "advantages that follow, and what of it trained. Without a selection, a rollout of the last iteration is shown, "
    "of a task whose rollouts differ in their outcome."
)
_ABOUT_VOTES = (
    "The stored votes of a run against the environment's oracle, iteration by iteration: on the steps that the policy "
    "took then, not on those of the reward panel, which are the untrained policy's."
)
_ABOUT_PAID = (
    "What the stored votes of a run pay for: the kinds of steps that the policy takes at the start and at the end of "
    "training, by the environment's label and its reason, with what the votes said and what trained the policy."
)


def add_commands(commands: Subparsers[argparse.ArgumentParser]) -> Subparsers[argparse.ArgumentParser]:
    """Add `rollouts`, and give what takes its commands: rooms above this one add some.

    Commands set `run`: from parsed arguments, which include `root`, to an exit code."""
    rollouts = commands.add_parser(
        "rollouts", help="show stored rollouts and what votes on them are worth, and export them"
    )
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
    _add_votes(actions)
    _add_paid(actions)
    return actions


def _add_votes(actions: Subparsers[argparse.ArgumentParser]) -> None:
    votes = actions.add_parser(
        "votes", help="how often votes are right about what the policy does", description=_ABOUT_VOTES
    )
    _add_judged_run(votes)
    votes.add_argument(
        "--every", type=int, metavar="N", help="every N-th iteration; default: about eight of them"
    )
    votes.add_argument("--json", action="store_true", help="as JSON, with the values of each run")
    votes.set_defaults(run=_votes)


def _add_paid(actions: Subparsers[argparse.ArgumentParser]) -> None:
    paid = actions.add_parser(
        "paid", help="what the votes pay for, by kinds of steps", description=_ABOUT_PAID
    )
    _add_judged_run(paid)
    paid.add_argument("--json", action="store_true", help="as JSON, with rare kinds too")
    paid.set_defaults(run=_paid)


def _add_judged_run(command: argparse.ArgumentParser) -> None:
    """The run that an oracle is asked about."""
    command.add_argument(
        "run_name",
        metavar="RUN",
        help="a run, its folder, or an arm: its finished seeds, else those in training",
    )
    command.add_argument(
        "--environment",
        action=argparse.BooleanOptionalAction,
        help="ask the run's environment; default: where it is that of the project",
    )


def _votes(args: argparse.Namespace) -> int:
    from rlanything.buffer.views.cli.output import print_page
    from rlanything.rollouts import judged

    page = judged.judged(args.run_name, args.root.resolve(), every=args.every, environment=args.environment)
    print_page(page, judged.text, args.json)
    return 0


def _paid(args: argparse.Namespace) -> int:
    from rlanything.buffer.views.cli.output import print_page
    from rlanything.rollouts import paid

    page = paid.paid(args.run_name, args.root.resolve(), environment=args.environment)
    print_page(page, paid.text, args.json)
    return 0


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
