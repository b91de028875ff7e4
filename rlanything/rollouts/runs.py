"""A run by its name, finished or in training, with the part of its own configuration that decided its rewards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rlanything.buffer.views.find.places import RUNS, arm_and_seed, in_training, project
from rlanything.buffer.views.find.runs import find_runs
from rlanything.config import ArmConfig, Checkpoint, Config
from rlanything.config.algorithm import JudgeConfig, SignalsConfig
from rlanything.core.errors import ConfigError, unknown_run
from rlanything.core.records.forms import first_error
from rlanything.files.reader import read_object
from rlanything.repro import run_rules
from rlanything.repro.stored import StoredRun
from rlanything.runs.resuming import origins


class NoRun(ConfigError):
    """A name means no run of the project; the message has the nearest name."""


@dataclass(frozen=True)
class Terms:
    """By what a run's replies became rewards, and whose tokenizers its tokens are of. env: its environment.

    rollouts: how often it tried a task; None where a run in training does not say so."""

    arm: ArmConfig
    signals: SignalsConfig
    judge: JudgeConfig
    policy: Checkpoint
    reward: Checkpoint
    env: Mapping[str, Any]
    rollouts: int | None


@dataclass(frozen=True)
class NamedRun:
    """A run in folder `stored.folder` of project `root`. finished: it is no longer in training.

    decoded: the texts of each role's tokens that were decoded so far."""

    stored: StoredRun
    root: Path
    finished: bool
    terms: Terms
    decoded: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def name(self) -> str:
        """Arm and seed, e.g. full/seed-0."""
        return arm_and_seed(self.stored.folder)

    @property
    def arm(self) -> str:
        """The name of its arm."""
        return self.stored.folder.resolve().parent.name


def find(name: str, root: Path) -> tuple[NamedRun, Sequence[str]]:
    """The first run that `name` (an arm, a run or a path) means, and the names of all of them.

    A finished run comes before one in training. Raises `NoRun` with the nearest name."""
    folders = _all(name, root)
    return open_run(folders[0]), [_short(folder, root) for folder in folders]


def find_all(name: str, root: Path) -> list[NamedRun]:
    """Every run that `name` means, one of each arm and seed: of those in training the newest.

    Where some are finished, those in training are not among them. Raises `NoRun` with the nearest name."""
    newest = {folder.parts[-2:]: folder for folder in reversed(_all(name, root))}
    return [open_run(folder) for folder in reversed(newest.values())]


def _all(name: str, root: Path) -> list[Path]:
    """The folders of the runs that a name means. Before a colon stands a workspace, or the folder of a project."""
    where, colon, rest = name.partition(":")
    within = project(where, root) if colon else None
    if within is not None:
        return _all(rest, within)
    folders = _named(name, root)
    if not folders:
        there = [*find_runs(root / RUNS), *in_training(root)]
        known = {_short(run, root) for run in there} | {run.parent.name for run in there}
        raise NoRun(f"no run {name!r}: {unknown_run(name, known)}")
    return folders


def open_run(folder: Path) -> NamedRun:
    """The run in a folder. Raises `ConfigError` for one without a record of its configuration."""
    if (folder / "metrics.jsonl").is_file():
        root = _above(folder, 3)
        rules = run_rules.own(folder)
        return NamedRun(StoredRun(folder), root, True, _terms(rules.config, rules.arm))
    path = folder.parent / origins.FILE
    if not path.is_file():
        raise ConfigError(f"{folder}: not a run that can be read (it has neither metrics.jsonl nor {path})")
    root = _above(folder, 5)
    config = read_object(path, "start the training again").get("config", {})
    return NamedRun(StoredRun(folder), root, False, _live_terms(path, config))


def _above(folder: Path, levels: int) -> Path:
    """The project of a run that lies so many levels below it. Raises `ConfigError`."""
    parents = folder.resolve().parents
    if len(parents) < levels:
        raise ConfigError(f"{folder}: not a run that can be read (no project is {levels} folders above it)")
    return parents[levels - 1]


def _terms(config: Config, arm: str) -> Terms:
    model = config.model
    terms = (config.arm(arm), config.signals, config.judge, model.policy, model.reward, config.env)
    return Terms(*terms, config.rollout.rollouts)


def _live_terms(path: Path, config: dict[str, Any]) -> Terms:
    """The same from the sections that a run in training keeps."""
    try:
        return Terms(
            ArmConfig.model_validate(config["arms"][path.parent.name]),
            SignalsConfig.model_validate(config["signals"]),
            JudgeConfig.model_validate(config["judge"]),
            Checkpoint.model_validate(config["model"]["policy"]),
            Checkpoint.model_validate(config["model"]["reward"]),
            dict(config["env"]),
            _tries(config.get("rollout")),
        )
    except ValidationError as error:
        raise ConfigError(f"{path}: {first_error(error)}") from None
    except (LookupError, TypeError, ValueError) as error:
        raise ConfigError(f"{path}: its configuration lacks {error}") from None


def _tries(rollout: object) -> int | None:
    found = rollout.get("rollouts") if isinstance(rollout, dict) else None
    return found if isinstance(found, int) else None


def _named(name: str, root: Path) -> list[Path]:
    for path in (root / name, root / RUNS / name):
        found = find_runs(path) if path.is_dir() else []
        if found:
            return found
    short = name.removeprefix(f"{RUNS}/").strip("/")
    return [run for run in in_training(root) if short in (arm_and_seed(run), run.parent.name)]


def _short(folder: Path, root: Path) -> str:
    """How a run is named in messages: below runs/ by arm and seed, elsewhere by its path."""
    for top in (root / RUNS, root):
        if folder.is_relative_to(top):
            return folder.relative_to(top).as_posix()
    return str(folder)
