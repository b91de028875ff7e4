"""Tasks and base models that a workspace reads through links: another folder's, which that folder may make again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from rlanything.config import Config, load
from rlanything.core.errors import ConfigError
from rlanything.files.atomic import own_folder
from rlanything.files.hashes import file_hashes, files_in
from rlanything.files.overrides import overrides
from rlanything.files.project import PARAMS, PRIVATE
from rlanything.planning.uncommitted import few
from rlanything.runs import provenance
from rlanything.runs.layout import Layout
from rlanything.stages import EVALUATE, LABEL, REPORT, TRAIN, of_arm
from rlanything.stages.measured import used
from rlanything.sweep.trials.inputs import MADE, Inputs
from rlanything.workspaces.places import name_of

MEASURING = (LABEL, EVALUATE)
"""Stages whose results belong to runs that are there."""


def require_own(root: Path, stage: str) -> None:
    """Raise `ConfigError` where tasks and base models belong to another folder, which `stage` would write to."""
    for name in MADE:
        path = root / name
        if path.is_symlink():
            raise ConfigError(
                f"{path}: a link to {path.resolve()}: `rlanything {stage}` would change another folder's results; "
                f"run it in {path.resolve().parent}{_of_trial(root, [stage])}"
            )


def require_folders(root: Path, stage: str, arm: str) -> None:
    """Raise `ConfigError` where tasks or base models are a link below data/ or models/, or what the stage makes is."""
    layout = Layout(root)
    made = [layout.manifest.parent, *sorted(layout.bootstrap.parent.glob("*"))]
    if stage == LABEL:
        made.append(layout.labels)
    if stage == TRAIN:
        runs = layout.run(arm, 0).parent
        made += [runs, *sorted(runs.glob("seed-*"))]
    for place in made:
        own_folder(place)


def check(root: Path, project: Path, config: Config, stage: str, arm: str) -> None:
    """Raise `ConfigError` where a stage in the workspace at `root` would read what others than its runs were made from.

    Training needs tasks and base models of the workspace's own settings. A measurement needs those of every run that is
    there, byte for byte: its numbers are compared with the others of the workspace. A report needs those of every
    evaluation.
    """
    if stage == REPORT:
        check_evaluations(root)
    if stage not in (TRAIN, *MEASURING) or not any((root / name).is_symlink() for name in MADE):
        return
    if found := _differences(root, project, config):
        words = [stage, *(["--arm", arm] if arm else [])]
        raise ConfigError(
            f"{root / MADE[0]}: a link to tasks and base models that were made under other settings (here -> there: "
            f"{few(found)})"
            f"{_of_trial(root, words)}"
        )
    if stage in MEASURING:
        check_runs(root)


def _differences(root: Path, project: Path, config: Config) -> list[str]:
    """What is other in the workspace's configuration than in that of the tasks and base models to which it links."""
    made, here = (root / MADE[0]).resolve(), project / PRIVATE / "inputs"
    inputs = Inputs.of(project, project / PARAMS, here, older=True)
    if made == (project / MADE[0]).resolve():  # which may be a link to a larger disk
        return [] if inputs.project is None else inputs.differences(config, inputs.project)
    if made.parent.parent == here.resolve() and (made.parent / PARAMS).is_file():
        return inputs.differences(config, load(made.parent / PARAMS))
    return []


def _of_trial(root: Path, words: Sequence[str]) -> str:
    """How the command works as that of a trial, which finds or makes the tasks and base models of its values.

    '' for a folder whose params.yaml does not say by which overrides it was written."""
    written = overrides(root / PARAMS)
    if not written or not name_of(root):
        return ""
    command = shlex.join(["rlanything", "--workspace", root.name, *words, *written])
    return f". With the workspace's overrides the command finds its own beside, or makes them: `{command}`"


def check_runs(root: Path) -> None:
    """Raise `ConfigError` where a run of the workspace was trained with other tasks or base models than it has now."""
    now = _hashes(root)
    for file in sorted(Layout(root).provenance("any").parent.glob("*.json")):
        record = provenance.read(root, file.stem)
        then = {name: value for name, value in record["inputs"].items() if Path(name).parts[0] in MADE}
        if found := provenance.changed(then, now):
            raise ConfigError(
                f"{root}: arm {file.stem} was trained with other tasks or base models than it has "
                f"now ({few(found)}). Bring those back ({(root / MADE[0]).resolve().parent}), or train it again"
            )


def check_evaluations(root: Path) -> None:
    """Raise `ConfigError` where an evaluation was made with other tasks or base models of another folder than now.

    What replaces the workspace's own removes them. An evaluation that records nothing of them is not compared.
    """
    layout = Layout(root)
    if not (layout.manifest.is_file() and layout.bootstrap.is_file()):
        return  # a report reads neither, and what is not here says nothing of them
    now = used(layout)
    place, others = layout.evaluation("any").parent, dict[str, str]()
    for file in sorted(place.glob("[!.]*.json")) if now else ():
        then = provenance.measured_with(root, file.stem)
        if found := [name for name in then if then[name] != now[name]]:
            others[file.stem] = " and ".join(found)
    if others:
        named = ", ".join(f"{arm} ({what})" for arm, what in others.items())
        again = ", ".join(f"`rlanything {of_arm(EVALUATE, arm)}`" for arm in others)
        raise ConfigError(
            f"{place}: measured with other tasks or base models than {root} has now: {named}. "
            f"Bring those back ({(root / MADE[0]).resolve().parent}), or measure again: {again}"
        )


def _hashes(root: Path) -> dict[str, str]:
    return file_hashes(root, [path for name in MADE for path in files_in(root / name)])
