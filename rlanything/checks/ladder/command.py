"""`rlanything check ladder`: run a declared ladder to its end, print what it found, publish it in checks/<name>/."""

from __future__ import annotations

import shutil
from pathlib import Path

from rlanything.checks import origins
from rlanything.checks.declaration import PLACE, check_declaration, copy_evaluations, keep, published
from rlanything.checks.ladder import document, figure, results
from rlanything.checks.ladder.declare import Ladder, load_ladder
from rlanything.checks.ladder.results import Found
from rlanything.checks.running import finished, print_tasks, say
from rlanything.checks.workspace import Workspace
from rlanything.files.records import write_json

LADDER = Path("experiments") / "check" / "ladder.yaml"


def run_ladder(file: Path, root: Path, params: Path, workers: int) -> Found:
    """Do what is still to do, publish, and print the page. After a kill, the same command goes on.

    Args:
        file: the declaration.
        root: the project.
        params: the project's configuration: its tasks and base models are taken where they are the ladder's.
        workers: seeds at once; changes no result.

    Raises:
        ConfigError: before any work, for a declaration that cannot be run.
    """
    ladder, space = _declared(file, root, params, workers)
    check = f"ladder {file.stem}"
    with finished(space, check):
        found = results.read(space.root, ladder, space.config)
        place = root / PLACE / file.stem
        with published(file.stem, root) as folder:
            _write(found, file, space.root, folder)
    print(document.to_markdown(found, file.stem), end="")
    say(check, f"results: {place}")
    return found


def print_ladder(file: Path, root: Path, params: Path, workers: int) -> None:
    """Print what the ladder would run; runs nothing. Raises `ConfigError`."""
    print_tasks(_declared(file, root, params, workers)[1], f"ladder of {file.name}")


def _declared(file: Path, root: Path, params: Path, workers: int) -> tuple[Ladder, Workspace]:
    check_declaration(file, root, workers)
    ladder = load_ladder(file)
    return ladder, Workspace.of(file.stem, ladder, root, params, workers)


def _write(found: Found, file: Path, workspace: Path, folder: Path) -> None:
    keep(file, found.ladder, load_ladder, folder / "ladder.yaml")
    shutil.copyfile(workspace / "params.yaml", folder / "params.yaml")
    write_json(folder / "ladder.json", document.to_json(found))
    (folder / "report.md").write_text(document.to_markdown(found, file.stem))
    (folder / "figures").mkdir()
    for name, content in figure.draw(found):
        (folder / "figures" / name).write_bytes(content)
    copy_evaluations(workspace, folder)
    origins.publish(workspace, folder)
