"""What a stage reads of a trial's own results: looked for before tasks and base models are made for it in vain."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from rlanything.config import BASE, CONTROLS, Config
from rlanything.core.errors import ConfigError
from rlanything.runs.layout import Layout
from rlanything.stages import EVALUATE, REPORT, TRAIN, of_arm
from rlanything.stages.stage import Stage
from rlanything.workspaces import listing


def check(
    stage: Stage, config: Config, place: Path, arm: str, overrides: Sequence[str], project: Path
) -> None:
    """Raise `ConfigError` where the stage cannot work in the workspace at `place`, which need not be there yet.

    The message names the command of the same trial that is missing.
    """
    if stage.name == REPORT and not Layout(place).evaluation(BASE).is_file():
        raise ConfigError(
            f"workspace {place.name}: nothing to report, because {BASE} is not measured here, with which all arms "
            f"are compared; {_command(of_arm(EVALUATE, BASE), overrides)} measures it"
        )
    if stage.name == EVALUATE and arm not in CONTROLS:
        for name in dict.fromkeys((config.judge_of(arm) or arm, arm)):  # that of the reward model comes first
            _require_run(name, config, place, overrides, project)


def _require_run(arm: str, config: Config, place: Path, overrides: Sequence[str], project: Path) -> None:
    layout = Layout(place)
    if all(layout.run(arm, seed).is_dir() for seed in range(config.train.seeds)):
        return
    others = [row["workspace"] for row in listing.page(project)[1:] if arm in row["finished"]]
    beside = [name for name in others if name != place.name]
    elsewhere = f". Workspaces that have one (`rlanything ls`): {', '.join(beside)}"
    raise ConfigError(
        f"workspace {place.name}: no finished run of {arm} here; "
        f"{_command(of_arm(TRAIN, arm), overrides)} makes it{elsewhere if beside else ''}"
    )


def _command(words: str, overrides: Sequence[str]) -> str:
    return f"`rlanything {words} {shlex.join(overrides)}`"
