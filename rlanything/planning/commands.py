"""The commands `plan` and `train --dry-run`: what a training will cost. Real checkpoints are not loaded.

Neither data nor models need to be there, and nothing is trained, unless --measure asks for it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rlanything.core.errors import ConfigError
from rlanything.core.printable import one_line, safe_lines, tell
from rlanything.files.project import PARAMS
from rlanything.parser import Subparsers

if TYPE_CHECKING:
    from rlanything.config import Config
    from rlanything.planning.costs.assumptions import Assumptions
    from rlanything.planning.costs.devices import Device
    from rlanything.planning.costs.estimate import Estimate
    from rlanything.planning.plan import Calibration

ASSUMED = {
    "episode_share": (float, "expected length of an episode as a share of its limit of steps; default: 1"),
    "reply_share": (float, "expected length of a reply as a share of its max_tokens; default: 1"),
    "rewritten_share": (float, "expected share of an iteration's tasks that are rewritten; default: 1"),
    "opening_tokens": (int, "tokens of instructions and first observation with its commands; default: 400"),
    "turn_tokens": (int, "tokens of a later observation with its commands; default: 100"),
    "picture_tokens": (int, "tokens of a picture; default: one for 32 x 32 pixels of env.screen"),
    "past_tokens": (int, "tokens of an observation alone, as a history holds it; default: 50"),
    "guide_tokens": (int, "tokens of the instructions of judge (history), critic and adapter; default: 350"),
}


def add_plan(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command `plan`."""
    plan = commands.add_parser("plan", help="dry run: print what every arm will cost")
    plan.add_argument(
        "overrides", nargs="*", metavar="key=value", help="plan this composition instead of params.yaml"
    )
    plan.add_argument("--arm", action="append", help="only this arm; may be repeated")
    add_arguments(plan)
    plan.set_defaults(run=_plan)


def add_arguments(parser: argparse._ActionsContainer) -> None:
    """Add the arguments of a plan."""
    add = parser.add_argument
    add("--device", metavar="NAME", help="plan for this device: cpu, H100, A100-80GB, H200, RTX4090, L4")
    add(
        "--devices",
        type=int,
        metavar="N",
        help="how many of them; default: train.devices on each of train.nodes",
    )
    add(
        "--details",
        action="store_true",
        help="also print memory, phases, stages and assumptions of every arm",
    )
    add("--config", action="store_true", help="also print the configuration")
    add("--measure", action="store_true", help="also train for some seconds here, and scale the time up")
    add("--json", action="store_true", help="print JSON instead of text")
    for name, (kind, text) in ASSUMED.items():
        add(f"--{name.replace('_', '-')}", type=kind, metavar="X", help=text)


def refuse_arguments(args: argparse.Namespace) -> None:
    """Raise `ConfigError` for an argument of a plan in a command that prints no plan."""
    for name in ("device", "devices", "details", "config", "measure", "json", *ASSUMED):
        if getattr(args, name) not in (None, False):
            raise ConfigError(f"--{name.replace('_', '-')}: belongs to --dry-run")


def composed(args: argparse.Namespace) -> Config:
    """The configuration that the overrides give.

    Its environment and data need not be installed. Raises `ConfigError`.
    """
    from rlanything.config import parse
    from rlanything.planning import compose, samplers

    refuse_params(args)
    args.root = args.root.resolve()
    config = parse(compose.compose(args.overrides, args.root))
    samplers.check(config)
    return config


def refuse_params(args: argparse.Namespace) -> None:
    """Raise `ConfigError` for --params in a command that composes key=value."""
    if args.params is not None:
        raise ConfigError(
            f"--params {args.params}: with key=value experiments/ alone is read; leave one of them"
        )


def print_plan(args: argparse.Namespace, config: Config, arms: Sequence[str]) -> int:
    """Print the plan of some arms. Returns the exit code. Raises `ConfigError`."""
    from rlanything.planning import plan, summary
    from rlanything.planning.costs import estimate, text

    given, device = _assumptions(args), _device(args, config)
    sizes = estimate.model_sizes(config, args.root)
    count = config.train.processes if args.devices is None else args.devices
    found = [
        estimate.estimate(config, arm, sizes, device, count, given) for arm in arms if device is not None
    ]
    measured = _measured(config, args.root, found) if args.measure else None
    plans = [plan.plan_arm(config, args.root, arm, measured) for arm in arms]
    if args.json:
        counts = {each.name: asdict(each) for each in plans}
        models = {name: asdict(size) for name, size in sizes.items()}
        costs = {each.arm: text.as_json(each) for each in found}
        print(
            json.dumps(
                {"models": models, "assumed": asdict(given), "counts": counts, "costs": costs}, indent=2
            )
        )
        return 0
    warn(config, args.root)
    if args.config:
        import yaml

        print(yaml.safe_dump(config.model_dump(mode="json", by_alias=True), sort_keys=False))
    print(safe_lines(summary.render(config, sizes, plans, found, given, args.root)), end="")
    if args.details and found:
        print(safe_lines(text.render(config, found, given)), end="")
    return 0


def _measured(config: Config, root: Path, found: Sequence[Estimate]) -> Calibration:
    """Seconds of an iteration, from a measurement of the arm with most work and what the model says of the others.

    Each arm measured by itself could come out longer than one that does more. Raises `ConfigError`.
    """
    from rlanything.planning.calibrate import seconds_per_iteration, why_not

    reason = why_not(config, root)
    if not found or found[0].device.name != "cpu":
        reason = "this machine's CPU is measured; leave --device out, or --device cpu"
    if reason:
        raise ConfigError(f"--measure: {reason}")
    most = max(found, key=lambda each: each.hours.iteration)
    seconds = seconds_per_iteration(config, root, most.arm)
    shares = {each.arm: each.hours.iteration / most.hours.iteration for each in found}
    return lambda config, root, arm: seconds * shares[arm]


def _device(args: argparse.Namespace, config: Config) -> Device | None:
    """The device given by --device, otherwise this machine's CPU or accelerator.

    None when the accelerator is unknown.
    """
    from rlanything.planning.costs import devices
    from rlanything.planning.costs.remedies import alone

    if args.devices is not None and args.devices < 1:
        raise ConfigError(f"--devices {args.devices}: must be at least 1")
    if args.devices is not None and args.devices > 1 and (why := alone(config)):
        raise ConfigError(f"--devices {args.devices}: {why} trains with one process alone; allowed: 1")
    if args.device is not None:
        return devices.device(args.device)
    if config.train.accelerator == "cpu":
        return devices.this_cpu()
    return devices.of_this_machine()


def _assumptions(args: argparse.Namespace) -> Assumptions:
    from rlanything.planning.costs.assumptions import Assumptions

    given = Assumptions(**{name: getattr(args, name) for name in ASSUMED if getattr(args, name) is not None})
    given.check()
    return given


def warn(config: Config, root: Path) -> None:
    """Print which packages of the engine and of LoRA are missing here, what in real checkpoints may not work, where
    samples are not those of the model that trains, code that DVC does not see, an environment whose values were not
    checked, and what the configuration gives away.
    """
    from rlanything.planning import check, checkpoints, disclosed, dvcfile, samplers

    found = [*check.missing(config), *checkpoints.warnings(config, root), *samplers.unlike(config)]
    for text in [*found, *dvcfile.unseen(config), *check.unchecked(config)]:
        tell(f"warning: {text}")
    for text in disclosed.notes(config):
        tell(text)


def say_uncommitted(path: Path) -> None:
    """Print what the configuration in `path` has that the last commit has not."""
    from rlanything.planning import uncommitted

    if found := uncommitted.note(path):
        tell(one_line(found))


def params_file(args: argparse.Namespace) -> Path:
    """The file of the configuration: the one that is named, or the project's."""
    path: Path = args.params or args.root / PARAMS
    return path


def configuration(
    args: argparse.Namespace, *, engine: bool = True, data: bool = True, installed: bool = True
) -> Config:
    """The checked configuration: nothing starts on one that cannot be finished.

    engine, data, installed: whether the command needs an engine, the environment's data, and the packages of the
    engine and of LoRA.
    """
    from rlanything.planning import check

    args.root = args.root.resolve()
    return check.read(params_file(args), args.root, engine=engine, data=data, installed=installed)


def _plan(args: argparse.Namespace) -> int:
    config = composed(args) if args.overrides else configuration(args, data=False, installed=False)
    if not args.overrides:
        say_uncommitted(params_file(args))
    arms = list(dict.fromkeys(args.arm or config.arms))
    for arm in arms:
        config.arm(arm)
    return print_plan(args, config, arms)
