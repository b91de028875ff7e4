"""`rlanything check selection`: measure every pair that is still to do, publish and print in checks/<name>/."""

from __future__ import annotations

import shutil
from pathlib import Path

from rlanything.checks.declaration import PLACE, check_declaration, keep, published
from rlanything.checks.running import measured, say
from rlanything.checks.selection import document, figure, results
from rlanything.checks.selection.declare import Selection, load_selection
from rlanything.checks.selection.measure import FOLDER, Pair, measure, pairs
from rlanything.checks.selection.results import Found
from rlanything.config import Config
from rlanything.files.records import write_json

SELECTION = Path("experiments") / "check" / "selection.yaml"


def run_selection(file: Path, root: Path, config: Config, workers: int) -> Found:
    """Do what is still to do, publish, and print the page. After a kill, the same command goes on.

    Args:
        file: the declaration.
        root: the project, whose finished runs are measured.
        config: its configuration.
        workers: pairs at once; changes no result.

    Raises:
        ConfigError: before any work, for a declaration that cannot be run and where a run is missing.
    """
    selection, found = _declared(file, root, config, workers)
    check, given = f"selection {file.stem}", (config.model_dump(by_alias=True), root, selection.model_dump())
    with measured(check, root / FOLDER, found, "pairs are measured", measure, given, workers):
        result = results.read(selection, found)
        place = root / PLACE / file.stem
        with published(file.stem, root) as folder:
            _write(result, file, found, folder)
    print(document.to_markdown(result, file.stem), end="")
    say(check, f"results: {place}")
    return result


def print_selection(file: Path, root: Path, config: Config, workers: int) -> None:
    """Print what the selection would measure; runs nothing. Raises `ConfigError`."""
    selection, found = _declared(file, root, config, workers)
    print(
        f"selection {file.stem}: {selection.programs} programs and {selection.tests} tests a problem, {selection.panel}"
    )
    for pair in found:
        print(f"  {pair.arm}, seed {pair.seed}{': measured' if pair.done else ''}")


def _declared(file: Path, root: Path, config: Config, workers: int) -> tuple[Selection, list[Pair]]:
    check_declaration(file, workers)
    selection = load_selection(file)
    selection.check(config)
    return selection, pairs(config, root, selection)


def _write(found: Found, file: Path, done: list[Pair], folder: Path) -> None:
    keep(file, found.selection, load_selection, folder / "selection.yaml")
    write_json(folder / "selection.json", document.to_json(found))
    (folder / "report.md").write_text(document.to_markdown(found, file.stem))
    (folder / "figures").mkdir()
    for name, content in figure.draw(found):
        (folder / "figures" / name).write_bytes(content)
    for pair in done:
        place = folder / "trials" / pair.arm / f"seed-{pair.seed}.jsonl.gz"
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(pair.file, place)
