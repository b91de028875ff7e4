"""`rlanything check adaptation`: measure every run that is still to do, publish and print in checks/<name>/."""

from __future__ import annotations

import shutil
from pathlib import Path

from rlanything.checks.adaptation import document, results
from rlanything.checks.adaptation.declare import Adaptation, load_adaptation
from rlanything.checks.adaptation.finished import CHECK, FOLDER, Run, runs
from rlanything.checks.adaptation.measure import measure
from rlanything.checks.adaptation.results import Found
from rlanything.checks.declaration import PLACE, check_declaration, keep, published
from rlanything.checks.running import measured, say
from rlanything.config import Config
from rlanything.files.records import write_json

ADAPTATION = Path("experiments") / "check" / "adaptation.yaml"


def run_adaptation(file: Path, root: Path, config: Config, workers: int) -> Found:
    """Do what is still to do, publish, and print the page. After a kill, the same command goes on.

    Args:
        file: the declaration.
        root: the project, whose finished runs are measured.
        config: its configuration.
        workers: runs at once; changes no result.

    Raises:
        ConfigError: before any work, for a declaration that cannot be run and where a run is missing.
    """
    declared, finished = _declared(file, root, config, workers)
    check, given = f"{CHECK} {file.stem}", (config.model_dump(by_alias=True), root, declared.model_dump())
    with measured(check, root / FOLDER, finished, "runs are measured", measure, given, workers):
        found = results.read(declared, config.adaptation.rule, finished)
        place = root / PLACE / file.stem
        with published(file.stem, root) as folder:
            _write(found, file, finished, folder)
    print(document.to_markdown(found, file.stem), end="")
    say(check, f"results: {place}")
    return found


def print_adaptation(file: Path, root: Path, config: Config, workers: int) -> None:
    """Print what the check would measure; runs nothing. Raises `ConfigError`."""
    declared, finished = _declared(file, root, config, workers)
    print(f"{CHECK} {file.stem}: rewrites of {declared.arm}, played by {', '.join(declared.probes)}")
    for run in finished:
        print(f"  seed {run.seed}{': measured' if run.done else ''}")


def _declared(file: Path, root: Path, config: Config, workers: int) -> tuple[Adaptation, list[Run]]:
    check_declaration(file, workers)
    declared = load_adaptation(file)
    declared.check(config)
    return declared, runs(config, root, declared)


def _write(found: Found, file: Path, finished: list[Run], folder: Path) -> None:
    keep(file, found.declared, load_adaptation, folder / "adaptation.yaml")
    write_json(folder / "adaptation.json", document.to_json(found))
    (folder / "report.md").write_text(document.to_markdown(found, file.stem))
    (folder / "rollouts").mkdir()
    for run in finished:
        shutil.copyfile(run.file, folder / "rollouts" / f"seed-{run.seed}.json")
