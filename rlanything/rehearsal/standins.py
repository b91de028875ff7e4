"""Stand-ins for the checkpoints that a configuration names, small or of real size: which, and in which folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rlanything import targets
from rlanything.config import Checkpoint, Config
from rlanything.core.errors import ConfigError, MachineError
from rlanything.core.images import Image
from rlanything.core.protocols import GeneratedData, TaskFamily
from rlanything.core.splits import TRAIN
from rlanything.core.types import Task
from rlanything.files import atomic
from rlanything.loop.episodes import opening
from rlanything.rehearsal.architectures import Architecture, architecture
from rlanything.rehearsal.expert_lessons import Expert, ExpertLessons
from rlanything.rehearsal.lessons import Lessons, TeacherLessons
from rlanything.rehearsal.teaching import ADAPTER, LABELLER, POLICY, REWARD, StandIns
from rlanything.rehearsal.unfinished import Unfinished
from rlanything.rewards.kind import kind_of
from rlanything.runs import build
from rlanything.stages.tasks import make_splits

Kinds = Mapping[str, str]
Declared = Mapping[str, Any]
NONE: Declared = MappingProxyType({})
ROLES = {POLICY: "qwen2", REWARD: "llama", ADAPTER: "qwen3"}
"""The architecture of each model where the command names no other."""
SIGHTED = "qwen3_vl"
"""The same of a model that is shown pictures."""
DATA = Path("checkpoints/data")
"""Where the settings of a rehearsal look for games and problems."""


def make(
    config: Config, root: Path, steps: int | None, kinds: Kinds, declared: Declared = NONE
) -> list[Path]:
    """Write generated data and the stand-ins of all models; returns the folders of models that were not there yet.

    What it made before it was ended is kept, until `unfinished.end`.

    Args:
        steps: optimizer steps of each one's lessons, real sizes too; None: `STEPS` for the small ones alone.
        kinds: architectures or names of real checkpoints by role; a role that is left out has that of `ROLES`, or
            `SIGHTED`. Judges that label steps are like the reward model.
        declared: name of a real checkpoint -> fields of its config.json.

    Raises:
        ConfigError: before any work, for embedded models, an environment that teaches nothing, a path that is no free
            folder below the root, data that is there already, or a folder that roles cannot share.
        MachineError: before any work, where the environment cannot run on this machine; for a model of real size that
            has no room on the device.
    """
    unfinished = Unfinished(root, config, steps, kinds, declared)
    for name, (_, source) in _sources(config).items():
        place = (root / source.path).resolve()
        if root.resolve() not in place.parents:
            raise ConfigError(
                f"{name}.path = {source.path}: a stand-in is written to a folder of the project"
            )
        unfinished.require_free(f"{name}.path = {source.path}", place)
    check(config, root, steps, kinds, declared)
    if not _is_expert(config):
        unfinished.require_free(str(root / DATA), root / DATA)
    unfinished.begin()
    standins = StandIns(config, root, _lessons(config, root), steps)
    places = _places(config, root, kinds, declared)
    missing = [place for place in places if not place.exists()]
    for place in missing:
        name, roles, chosen = places[place]
        standins.make(name.removeprefix("model."), roles, chosen, place)
    return missing


def check(config: Config, root: Path, steps: int | None, kinds: Kinds, declared: Declared = NONE) -> None:
    """Raise as `make` does before any work, whatever lies in the folders of the models."""
    if config.model.embedded is not None:
        raise ConfigError(
            "model.embedded: these models are made by `bootstrap`; a rehearsal is for checkpoints"
        )
    if steps is not None and steps < 1:
        raise ConfigError(f"--steps {steps}: must be at least 1")
    _places(config, root, kinds, declared)
    if _is_expert(config):
        _begun(config, make_splits(config, root)[TRAIN][:1])


def _places(
    config: Config, root: Path, kinds: Kinds, declared: Declared
) -> dict[Path, tuple[str, list[str], Architecture]]:
    """Folder of a stand-in -> key of the first role that has it, all roles in the lessons, and architecture.

    Roles may share a model of real size. Raises `ConfigError` for a small one, or where they name different
    architectures.
    """
    found: dict[Path, tuple[str, list[str], Architecture]] = {}
    for name, (role, source) in _sources(config).items():
        place = (root / source.path).resolve()
        if place not in found:
            found[place] = name, [role], _architecture(config, role, kinds, declared)
            continue
        other, roles, chosen = found[place]
        own = REWARD if role == LABELLER else role
        if not chosen.sizes or (own in kinds and _architecture(config, role, kinds, declared) != chosen):
            raise ConfigError(
                f"{name}.path = {source.path}: it is the folder of {other} too. Only roles with one checkpoint of real "
                "size share a folder; a small stand-in is taught for one role"
            )
        if shown := getattr(config.model.images, own, 0):
            raise ConfigError(
                f"{name}.path = {source.path}: it is the folder of {other} too, whose model reads text alone, and "
                f"model.images.{own} = {shown}; give it a folder of its own"
            )
        if role not in roles:  # judges that label learn the same, so once is enough
            roles.append(role)
    return found


def _lessons(config: Config, root: Path) -> Lessons:
    """What the stand-ins learn. Data that replaces a downloaded set is written where the environment needs one."""
    if _is_expert(config):
        family = build.family(config)
        assert isinstance(family, Expert)
        tasks = {task.task_id: task for found in make_splits(config, root).values() for task in found}
        images = _begun(config, list(tasks.values()))
        return ExpertLessons(config, build.prompts(config, root), family, list(tasks.values()), images)
    generated = _generated(config)
    data = generated.stand_ins(config.tasks.drawn, config.seed)
    if not (root / DATA).exists():
        with atomic.whole(root / DATA) as folder:
            generated.write_data(folder, data)
    return TeacherLessons(config, root, generated, [task for found in data.values() for task in found])


def _is_expert(config: Config) -> bool:
    """Whether the environment's tasks are there already, with experts."""
    return issubclass(targets.named_class(config.env, "env", TaskFamily), Expert)


def _generated(config: Config) -> GeneratedData:
    """The configured class with its easiest generated tasks. Raises `ConfigError` when it generates none."""
    cls = targets.named_class(config.env, "env", GeneratedData)
    found: GeneratedData = cls.easiest(config.env)  # type: ignore[attr-defined]  # `named_class` looked for it
    kind_of(config).check(config, found)
    return found


def _sources(config: Config) -> dict[str, tuple[str, Checkpoint]]:
    """Key below `model`, or name of a judge that labels steps -> its role in the lessons, and where it is."""
    named: dict[str, tuple[str, Checkpoint]] = {
        f"model.{role}": (role, getattr(config.model, role)) for role in ROLES
    }
    for name, judge in config.evaluate.judges.items():
        named[f"evaluate.judges.{name}"] = LABELLER, judge
    return named


def _architecture(config: Config, role: str, kinds: Kinds, declared: Declared) -> Architecture:
    """The architecture of a role. Raises `ConfigError` for an unknown one, and for one without eyes that needs some."""
    role = REWARD if role == LABELLER else role
    shown = getattr(config.model.images, role, 0)
    name = kinds.get(role) or (SIGHTED if shown else ROLES[role])
    chosen = architecture(name, declared)
    if shown and chosen.patch is None:
        raise ConfigError(
            f"--{role} {name}: it reads text alone, and model.images.{role} = {shown}; choose qwen2_5_vl or qwen3_vl"
        )
    return chosen


def _begun(config: Config, tasks: Sequence[Task]) -> dict[str, Sequence[Image]]:
    """Task id -> the pictures that its episode begins with. Raises `MachineError` where one cannot begin."""
    family = build.family(config)
    found: dict[str, Sequence[Image]] = {}
    for task in tasks:
        try:
            found[task.task_id] = opening(family, task, config.seed).images
        except MachineError:
            raise
        except Exception as error:  # whatever an environment raises
            raise MachineError(f"env: no episode can begin on this machine: {error}") from error
    return found
