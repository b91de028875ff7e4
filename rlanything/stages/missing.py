"""Finds and runs the stages that are still missing in a project, for callers that run stages without DVC."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rlanything.config import CONTROLS, Config
from rlanything.runs.layout import Layout
from rlanything.stages import EVALUATE, LABEL, TRAIN
from rlanything.stages.declared import STAGES
from rlanything.stages.stage import Stage

Command = tuple[str, ...]
"""Arguments of `rlanything`: a stage, and `--arm` with its name if the stage has arms."""


def missing_runs(config: Config, root: Path, arms: Sequence[str]) -> list[Command]:
    """The commands that are still needed to train and evaluate `arms` in the project at `root`, in order.

    `label` comes first if the configuration needs it and its folder is missing. An arm that is trained is measured
    again, and so is one that it judges: an evaluation that is there may be of other runs, and a training removes it.
    """
    layout, seeds = Layout(root), config.train.seeds
    trains = {arm for arm in arms if arm not in CONTROLS and not _trained(layout, arm, seeds)}
    judged = {arm for arm in arms if arm in config.arms and config.arms[arm].reward_from in trains}
    found: list[Command] = [(LABEL,)] if config.evaluate.own_panel and not layout.labels.is_dir() else []
    for arm in arms:
        if arm in trains:
            found.append((TRAIN, "--arm", arm))
        if arm in {*trains, *judged} or not layout.evaluation(arm).is_file():
            found.append((EVALUATE, "--arm", arm))
    return found


def _trained(layout: Layout, arm: str, seeds: int) -> bool:
    """Whether an arm is trained and stored. Its record is written after its runs."""
    return layout.provenance(arm).is_file() and all(layout.run(arm, seed).is_dir() for seed in range(seeds))


def run_command(config: Config, root: Path, command: Command) -> None:
    """Run such a command in this process. Raises what its stage raises."""
    stage_of(command).work(config, root, command[-1] if command[1:] else "")


def stage_of(command: Command) -> Stage:
    """The stage that such a command runs."""
    (stage,) = (stage for stage in STAGES if stage.name == command[0])
    return stage
