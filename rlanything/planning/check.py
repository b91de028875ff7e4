"""Checks of the configuration before any work starts: class names, constructor arguments, prompt files, memory.

A check makes no object of a class that is not the project's own, but for task families that allow it
(`core.protocols.OnlyChecks`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import psutil

from rlanything import targets
from rlanything.config import Config, load
from rlanything.core.errors import ConfigError
from rlanything.core.printable import safe
from rlanything.core.protocols import (
    Engine,
    LeavesOpen,
    MayNotTeach,
    OnlyChecks,
    Pictured,
    Stored,
    TaskFamily,
)
from rlanything.core.splits import TRAIN
from rlanything.planning import disclosed, samplers
from rlanything.planning.declared_class import declared_class
from rlanything.planning.samplers import NATIVE
from rlanything.runs import build, families
from rlanything.runs.executors import cluster

FLOAT = 4
"""Bytes of a float32 weight."""
GIVEN = ("model", "tokenizer", "eyes")
"""Arguments that the program passes to an engine. All others come from the section `engine`."""
_ARM = re.compile(r"\w[\w+-]*")


def read(path: Path, root: Path, *, engine: bool = True, data: bool = True, installed: bool = True) -> Config:
    """The configuration in `path`, checked. Raises `ConfigError`."""
    config = load(path)
    try:
        check(config, root, engine=engine, data=data, installed=installed)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    return config


def check(
    config: Config, root: Path, *, engine: bool = True, data: bool = True, installed: bool = True
) -> None:
    """Raise `ConfigError` unless every part that the configuration names can be made.

    A task family of the project, or one that allows it, is constructed, so that its constructor can check its
    arguments. For other task families, engines, loggers and callbacks, only the class and the names of the arguments
    are checked.
    engine: whether engine, LoRA's package, loggers and callbacks are checked. Those of others are imported for that.
    installed: whether the packages of the engine and of LoRA must be installed here.
    data: whether the environment's data must be there. Without it no task family is constructed.
    """
    arm_names(config)
    disclosed.check_names(config)
    for name, section in config.named().items():
        targets.permit(section, name)
    arguments(config.env, "env", TaskFamily)
    if data and constructible(config):
        family = build.family(config)
        families.check_splits(family, config.tasks)
        pictures(config, family)
        taught(config, family)
    for folder in (None, *(sampler.prompts for sampler in config.evaluate.samplers)):
        build.prompts(config, root, folder)
    memory(config)
    if engine:
        arguments(config.engine, "engine", Engine)
        samplers.check(config)
        overlap(config)
    if engine and installed:
        packages(config)
    if engine and (config.train.loggers or config.train.callbacks):
        from rlanything.runs import trackers

        trackers.check_sections(config)


def constructible(config: Config) -> bool:
    """Whether a check constructs the task family: one of the project, or one whose class allows it.

    Raises `ConfigError` for a class that cannot be found.
    """
    if targets.is_ours(config.env):
        return True
    cls = targets.named_class(config.env, "env", TaskFamily)
    return isinstance(cls, OnlyChecks) and cls.constructor_only_checks is True


def unchecked(config: Config) -> list[str]:
    """A sentence where no value of the environment's arguments was checked."""
    if constructible(config):
        return []
    return [
        f"env.{targets.TARGET} = {config.env[targets.TARGET]!r}: only the names of its arguments are checked before "
        "any work. With constructor_only_checks = True its class lets checks construct it (docs/environments.md)"
    ]


def arm_names(config: Config) -> None:
    """Raise `ConfigError` for an arm that could be more than a word in a command: a shell runs those of dvc.yaml.

    DVC reads a dot in a name of dvc.yaml as a step into a section, so no name has one. Nor may two differ in capitals
    alone, as their folders would not on every file system.
    """
    seen: dict[str, str] = {}
    for name in config.arms:
        if (other := seen.setdefault(name.casefold(), name)) != name:
            raise ConfigError(
                f"arms.{safe(name)}: differs from arms.{safe(other)} in capitals alone; folders would not"
            )
        if not _ARM.fullmatch(name):
            raise ConfigError(
                f"arms.{safe(name)}: an arm is a word in commands: it has letters, digits, _, + and - only, and "
                "begins with a letter, a digit or _"
            )


def packages(config: Config) -> None:
    """Raise `ConfigError` where the package of the engine or of LoRA is missing here."""
    samplers.installed(config)
    lora(config)


def lora(config: Config) -> None:
    """Raise `ConfigError` where LoRA trains a model and its package is missing. torch is imported only for LoRA."""
    if config.learn.lora:
        from rlanything.engines.lora.injection import check_installed

        check_installed(f"learn.{next(iter(config.learn.lora))}.lora")


def missing(config: Config) -> list[str]:
    """The packages that are missing, for commands that only warn: the configuration may be for another machine."""
    found = []
    for needs in (samplers.installed, lora):
        try:
            needs(config)
        except ConfigError as error:
            found.append(str(error))
    return found


def pictures(config: Config, family: TaskFamily) -> None:
    """Raise `ConfigError` where agents must see pictures and get none, or models are to be shown some and none come."""
    images, observe = config.model.images, config.env.get("observe")
    shown = isinstance(family, Pictured) and family.pictures
    if isinstance(family, Pictured) and family.only_pictures and not images.policy:
        raise ConfigError(
            f"env.observe = {observe!r}: the screen is a picture only, and model.images.policy = 0 shows the policy "
            "none. Allowed: model.images.policy of at least 1 (the paper: 3), or env.observe=tree or both, which has "
            "the accessibility tree as text (docs/gui.md)"
        )
    if images.any and not shown:
        role = "policy" if images.policy else "reward"
        why = f"with env.observe = {observe!r} the" if isinstance(family, Pictured) else "this"
        raise ConfigError(
            f"model.images.{role} = {getattr(images, role)}: {why} environment shows no pictures. Set "
            "model.images.policy and model.images.reward to 0, or use an environment with pictures, as env=desktop "
            "with env.observe=both"
        )


def taught(config: Config, family: TaskFamily) -> None:
    """Raise `ConfigError` for embedded models where the environment, as it is set, has nothing to teach them with."""
    if config.model.embedded is None or not isinstance(family, MayNotTeach):
        return
    if why := family.why_no_lessons():
        raise ConfigError(
            f"model.embedded: `bootstrap` teaches these models, and the environment has nothing to teach them with. "
            f"env.{why}. Otherwise use checkpoints (model=local, docs/checkpoints.md)"
        )


def machine(config: Config) -> None:
    """Raise `ConfigError` when this machine lacks the devices or the executor, or the engine cannot use the devices.

    No model is loaded and nothing is started. torch is imported only where its answer can refuse something: an engine
    that any device suits takes whatever `auto` finds."""
    cluster.check(config.executor)
    native = config.engine[targets.TARGET] == NATIVE
    auto = config.train.accelerator == "auto" and config.train.devices == 1
    if config.train.accelerator == "cpu" or (auto and not native):
        return
    from rlanything.engines import placement

    kind = placement.device(config.train).type
    if kind != "cpu" and native:
        raise ConfigError(
            f"train.accelerator = {config.train.accelerator!r}: that is {kind!r} here, and {NATIVE} samples on the CPU "
            "only; use engine=transformers, or train.accelerator=cpu"
        )


def stored(config: Config) -> None:
    """Raise `ConfigError` where the tasks are files that are not there. Once tasks are made, none is needed."""
    if constructible(config) and isinstance(family := build.family(config), Stored):
        tasks = config.tasks
        trained = [TRAIN] if tasks.start is None else []
        try:
            family.check_data({*trained, *(tasks.split(name) for name in tasks.panels)})
        except ValueError as error:
            raise ConfigError(f"env: {error}") from None


def left_open(config: Config) -> list[str]:
    """What the environment's settings leave open. Raises `ConfigError` where they are wrong."""
    family = build.family(config) if constructible(config) else None
    return [f"env.{text}" for text in family.left_open()] if isinstance(family, LeavesOpen) else []


def overlap(config: Config) -> None:
    """Raise `ConfigError` where older weights are asked for, and nothing would be done at the same time.

    `--one-process` does without workers all the same. Then the results are the same, one thing after the other.
    """
    if config.train.staleness and config.executor.form == "inline":
        raise ConfigError(
            f"train.staleness = {config.train.staleness}: nothing is sampled beside learning with executor=inline, "
            "because only the main thread of a process can end an environment that hangs. Allowed: executor=processes "
            "or executor=ray, or train.staleness=0"
        )


def memory(config: Config, total: int | None = None) -> None:
    """Raise `ConfigError` for embedded models whose weights alone exceed the machine's memory (`total` bytes).

    A trained model needs its weights, gradients and two moments of AdamW. A frozen model needs its weights only.

    Policy, reward model and adapter are counted, for all seeds that train at once.
    """
    sizes = config.model.embedded
    if sizes is None:
        return
    most = psutil.virtual_memory().total if total is None else total
    trained = ["policy", *(["reward"] if any(arm.train_reward for arm in config.arms.values()) else [])]
    learned = sum(name not in config.learn.lora for name in trained)  # LoRA's own weights are few
    runs = config.train.seeds_at_once
    needed = runs * FLOAT * sizes.parameters * (4 * learned + (3 - learned))
    if needed > most:
        raise ConfigError(
            f"model.embedded: models of {sizes.parameters:,} parameters need at least {needed / 1e9:,.1f} GB to train, "
            f"{runs} at once (train.workers, train.seeds), and this machine has {most / 1e9:,.1f} GB; make hidden, "
            "intermediate, layers or vocab smaller"
        )


def arguments(section: dict[str, Any], name: str, of: type) -> None:
    """Raise `ConfigError` for a class that is not a subclass of `of`, or a key that its constructor does not take.

    Also for one that lacks an argument, but for engines: their defaults are not read from their source.
    """
    if of is not Engine:
        targets.require_complete(section, targets.named_class(section, name, of), name)
        return
    targets.permit(section, name)
    cls = declared_class(section[targets.TARGET], of) or targets.named_class(section, name, of)
    targets.named_arguments(section, cls, name, GIVEN)
