"""`rlanything check adaptation`: measure every run that is still to do, publish and print in checks/<name>/."""

from __future__ import annotations

import shutil
from pathlib import Path

from rlanything.checks.adaptation import document, results
from rlanything.checks.adaptation.declare import load_adaptation
from rlanything.checks.adaptation.finished import CHECK as NAME
from rlanything.checks.adaptation.finished import FOLDER, Run, runs
from rlanything.checks.adaptation.measure import measure
from rlanything.checks.adaptation.results import Found
from rlanything.checks.finished_runs import FinishedRuns
from rlanything.config import Config

ADAPTATION = Path("experiments") / "check" / "adaptation.yaml"


def run_adaptation(file: Path, root: Path, config: Config, workers: int) -> Found:
    """See `FinishedRuns.run`. workers: runs at once."""
    return CHECK.run(file, root, config, workers)


def print_adaptation(file: Path, root: Path, config: Config, workers: int) -> None:
    """Print what the check would measure; runs nothing. Raises `ConfigError`."""
    declared, finished = CHECK.declared(file, root, config, workers)
    print(f"{NAME} {file.stem}: rewrites of {declared.arm}, played by {', '.join(declared.probes)}")
    for run in finished:
        print(f"  seed {run.seed}{': measured' if run.done else ''}")


def _add(_found: Found, finished: list[Run], folder: Path) -> None:
    (folder / "rollouts").mkdir()
    for run in finished:
        shutil.copyfile(run.file, folder / "rollouts" / f"seed-{run.seed}.json")


CHECK = FinishedRuns(
    name=NAME,
    folder=FOLDER,
    done="runs are measured",
    load=load_adaptation,
    parts=runs,
    measure=measure,
    read=lambda config, declared, finished: results.read(declared, config.adaptation.rule, finished),
    to_json=document.to_json,
    to_markdown=document.to_markdown,
    add=_add,
)
