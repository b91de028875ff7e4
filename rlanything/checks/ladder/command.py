"""`rlanything check ladder`: run a declared ladder to its end, print what it found, publish it in checks/<name>/."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from rlanything.checks.declaration import PLACE, check_declaration
from rlanything.checks.ladder import document, figure, results
from rlanything.checks.ladder.declare import load_ladder
from rlanything.checks.ladder.results import Found
from rlanything.checks.ladder.workspace import Workspace
from rlanything.files import atomic, locks
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
    space = _space(file, root, params, workers)
    atomic.make(space.root)
    with locks.held(space.root / "lock", f"{space.root}: another process runs this ladder"):
        space.prepare()
        _work(space, file.stem)
        found = results.read(space.root, space.ladder, space.config)
        place = root / PLACE / file.stem
        with atomic.whole(place) as folder:
            _write(found, file, space.root, folder)
    print(document.to_markdown(found, file.stem), end="")
    _say(file.stem, f"results: {place}")
    return found


def print_ladder(file: Path, root: Path, params: Path, workers: int) -> None:
    """Print what the ladder would run; runs nothing. Raises `ConfigError`."""
    space = _space(file, root, params, workers)
    print(f"ladder {file.stem}: {space.ladder.seeds} seeds, in {space.root}")
    for task in space.tasks():
        print(f"  {task.title}")


def _space(file: Path, root: Path, params: Path, workers: int) -> Workspace:
    check_declaration(file, workers)
    return Workspace.of(file.stem, load_ladder(file), root, params, workers)


def _work(space: Workspace, name: str) -> None:
    """Do every task that is still to do, one after the other."""
    left = list(space.tasks())
    for number, task in enumerate(left, 1):
        _say(name, f"{number} of {len(left)}: {task.title}")
        task.work()


def _write(found: Found, file: Path, workspace: Path, folder: Path) -> None:
    shutil.copyfile(file, folder / "ladder.yaml")
    shutil.copyfile(workspace / "params.yaml", folder / "params.yaml")
    write_json(folder / "ladder.json", document.to_json(found))
    (folder / "report.md").write_text(document.to_markdown(found, file.stem))
    (folder / "figures").mkdir()
    for name, content in figure.draw(found):
        (folder / "figures" / name).write_bytes(content)
    shutil.copytree(workspace / "evaluation", folder / "evaluation")


def _say(name: str, text: str) -> None:
    print(f"ladder {name}: {text}", file=sys.stderr, flush=True)
