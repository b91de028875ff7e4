"""`rlanything check selection`: measure every pair that is still to do, publish and print in checks/<name>/."""

from __future__ import annotations

import shutil
from pathlib import Path

from rlanything.checks.finished_runs import FinishedRuns
from rlanything.checks.selection import document, figure, results
from rlanything.checks.selection.declare import load_selection
from rlanything.checks.selection.measure import FOLDER, Pair, measure, pairs
from rlanything.checks.selection.results import Found
from rlanything.config import Config

SELECTION = Path("experiments") / "check" / "selection.yaml"


def run_selection(file: Path, root: Path, config: Config, workers: int) -> Found:
    """See `FinishedRuns.run`. workers: pairs at once."""
    return CHECK.run(file, root, config, workers)


def print_selection(file: Path, root: Path, config: Config, workers: int) -> None:
    """Print what the selection would measure; runs nothing. Raises `ConfigError`."""
    selection, found = CHECK.declared(file, root, config, workers)
    print(
        f"selection {file.stem}: {selection.programs} programs and {selection.tests} tests a problem, {selection.panel}"
    )
    for pair in found:
        print(f"  {pair.arm}, seed {pair.seed}{': measured' if pair.done else ''}")


def _add(found: Found, done: list[Pair], folder: Path) -> None:
    (folder / "figures").mkdir()
    for name, content in figure.draw(found):
        (folder / "figures" / name).write_bytes(content)
    for pair in done:
        place = folder / "trials" / pair.arm / f"seed-{pair.seed}.jsonl.gz"
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(pair.file, place)


CHECK = FinishedRuns(
    name="selection",
    folder=FOLDER,
    done="pairs are measured",
    load=load_selection,
    parts=pairs,
    measure=measure,
    read=lambda _config, selection, found: results.read(selection, found),
    to_json=document.to_json,
    to_markdown=document.to_markdown,
    add=_add,
)
