"""`rlanything check study`: register a declared study, run it to its end, publish it in checks/<name>/."""

from __future__ import annotations

import shutil
from pathlib import Path

from rlanything.checks import origins
from rlanything.checks.declaration import (
    HIDDEN,
    PLACE,
    check_declaration,
    copy_evaluations,
    keep,
    published,
)
from rlanything.checks.running import finished, print_tasks, say
from rlanything.checks.study import document, figure, registration, results
from rlanything.checks.study.declare import Study, load_study
from rlanything.checks.study.published import read_published
from rlanything.checks.study.results import Found
from rlanything.checks.workspace import Workspace
from rlanything.files.project import PARAMS
from rlanything.files.records import write_json

STUDY = Path("experiments") / "check" / "study.yaml"
PAGE, FIGURES = "report.md", "figures"


def register_study(file: Path, root: Path, params: Path, pinned: bool = False) -> None:
    """Write down what the study declares, before anything is trained. pinned: as in `run_study`.

    Raises `ConfigError`.
    """
    study, space = _declared(file, root, params, 1, pinned)
    folder = root / PLACE / file.stem
    made = registration.register(study, space, folder)
    print(
        f"registered {made.at}: {len(study.hypotheses)} hypotheses, {len(study.trained)} arms, hash {made.hash[:16]}"
    )
    print(f"commit {folder / registration.FILE}, then run the study")


def run_study(file: Path, root: Path, params: Path, workers: int, pinned: bool = False) -> Found:
    """Do what is still to do, publish, and print the page. After a kill, the same command goes on.

    Args:
        file: the declaration.
        root: the project.
        params: the project's configuration: its tasks and base models are taken where they are the study's.
        workers: seeds at once; changes no result.
        pinned: run it under the configuration that was registered, whatever `experiments/` says today.

    Raises:
        ConfigError: before any work, for a declaration that cannot be run, or that is not registered.
    """
    study, space = _declared(file, root, params, workers, pinned)
    place, check = root / PLACE / file.stem, f"study {file.stem}"
    made = registration.registered(study, space, place, _registering(file, pinned))
    with finished(space, check):
        found = results.read(space.root, study, space.config, made)
        with published(file.stem, root) as folder:
            shutil.copyfile(space.root / registration.FILE, folder / registration.FILE)
            _write(found, file, space.root, folder)
    print(document.to_markdown(found, file.stem), end="")
    say(check, f"results: {place}")
    return found


def draw_study(file: Path, root: Path) -> Found:
    """Draw the page and the figures of a published study again, from its own folder. Trains and computes nothing.

    Args:
        file: names the study; what was declared is read from the published folder.
        root: the project.

    Raises:
        ConfigError: where no such study was published, or where its files are damaged.
    """
    check_declaration(file, root, 1)
    place = root / PLACE / file.stem
    read_published(place)  # before anything is written; another process may publish it until it is locked
    with published(file.stem, root) as folder:
        found = read_published(place)
        drawn = shutil.ignore_patterns(PAGE, FIGURES, HIDDEN)
        shutil.copytree(place, folder, dirs_exist_ok=True, ignore=drawn)
        _draw(found, file.stem, folder)
    say(f"study {file.stem}", f"page: {place / PAGE}")
    return found


def print_study(file: Path, root: Path, params: Path, workers: int, pinned: bool = False) -> None:
    """Print what the study would run; runs nothing. Raises `ConfigError`."""
    study, space = _declared(file, root, params, workers, pinned)
    print_tasks(space, f"study of {file.name}")
    for name, given in study.hypotheses.items():
        print(f"  hypothesis {name}: {given.arm} above {given.over} in {given.metric}: {given.claim}")


def _declared(
    file: Path, root: Path, params: Path, workers: int, pinned: bool = False
) -> tuple[Study, Workspace]:
    check_declaration(file, root, workers)
    study = load_study(file)
    pins = registration.pinned(study, root, root / PLACE / file.stem) if pinned else ()
    return study, Workspace.of(file.stem, study, root, params, workers, pins)


def _registering(file: Path, pinned: bool) -> str:
    """The command that registers a study."""
    return f"rlanything check study {file} --register{' --registered' if pinned else ''}"


def _write(found: Found, file: Path, workspace: Path, folder: Path) -> None:
    keep(file, found.study, load_study, folder / "study.yaml")
    shutil.copyfile(workspace / PARAMS, folder / PARAMS)
    write_json(folder / "study.json", document.to_json(found))
    _draw(found, file.stem, folder)
    copy_evaluations(workspace, folder)
    origins.publish(workspace, folder)


def _draw(found: Found, name: str, folder: Path) -> None:
    (folder / PAGE).write_text(document.to_markdown(found, name))
    (folder / FIGURES).mkdir()
    for figure_name, content in figure.draw(found):
        (folder / FIGURES / figure_name).write_bytes(content)
