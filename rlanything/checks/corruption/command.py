"""`rlanything check corruption`: ask every reward model that is still to do, publish and print in checks/<name>/."""

from __future__ import annotations

import shutil
from pathlib import Path

from rlanything.checks.corruption import document, results
from rlanything.checks.corruption.declare import Corruption, load_corruption
from rlanything.checks.corruption.measure import FOLDER, Asked, asked, measure
from rlanything.checks.corruption.results import Found
from rlanything.checks.declaration import PLACE, check_declaration, keep, published
from rlanything.checks.running import measured, say
from rlanything.config import Config
from rlanything.files.records import write_json

CORRUPTION = Path("experiments") / "check" / "corruption.yaml"


def run_corruption(file: Path, root: Path, config: Config, workers: int) -> Found:
    """Do what is still to do, publish, and print the page. After a kill, the same command goes on.

    Args:
        file: the declaration.
        root: the project, whose finished runs are asked.
        config: its configuration.
        workers: reward models at once; changes no result.

    Raises:
        ConfigError: before any work, for a declaration that cannot be run and where a run is missing.
    """
    declared, models = _declared(file, root, config, workers)
    check, given = f"corruption {file.stem}", (config.model_dump(by_alias=True), root, declared.model_dump())
    with measured(check, root / FOLDER, models, "reward models were asked", measure, given, workers):
        found = results.read(declared, models)
        place = root / PLACE / file.stem
        with published(file.stem, root) as folder:
            _write(found, file, models, folder)
    print(document.to_markdown(found, file.stem), end="")
    say(check, f"results: {place}")
    return found


def print_corruption(file: Path, root: Path, config: Config, workers: int) -> None:
    """Print what the check would ask; runs nothing. Raises `ConfigError`."""
    declared, models = _declared(file, root, config, workers)
    print(f"corruption {file.stem}: {', '.join(declared.kinds)}, on {declared.panel}")
    for one in models:
        print(f"  {one.arm}, seed {one.seed}{': asked' if one.done else ''}")


def _declared(file: Path, root: Path, config: Config, workers: int) -> tuple[Corruption, list[Asked]]:
    check_declaration(file, workers)
    declared = load_corruption(file)
    declared.check(config)
    return declared, asked(config, root, declared)


def _write(found: Found, file: Path, models: list[Asked], folder: Path) -> None:
    keep(file, found.declared, load_corruption, folder / "corruption.yaml")
    write_json(folder / "corruption.json", document.to_json(found))
    (folder / "report.md").write_text(document.to_markdown(found, file.stem))
    for one in models:
        place = folder / "answers" / one.arm / f"seed-{one.seed}.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(one.file, place)
