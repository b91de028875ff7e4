"""`rlanything check corruption`: ask every reward model that is still to do, publish and print in checks/<name>/."""

from __future__ import annotations

import shutil
from pathlib import Path

from rlanything.checks.corruption import document, results
from rlanything.checks.corruption.declare import load_corruption
from rlanything.checks.corruption.measure import FOLDER, Asked, asked, measure
from rlanything.checks.corruption.results import Found
from rlanything.checks.finished_runs import FinishedRuns
from rlanything.config import Config

CORRUPTION = Path("experiments") / "check" / "corruption.yaml"


def run_corruption(file: Path, root: Path, config: Config, workers: int) -> Found:
    """See `FinishedRuns.run`. workers: reward models at once."""
    return CHECK.run(file, root, config, workers)


def print_corruption(file: Path, root: Path, config: Config, workers: int) -> None:
    """Print what the check would ask; runs nothing. Raises `ConfigError`."""
    declared, models = CHECK.declared(file, root, config, workers)
    print(f"corruption {file.stem}: {', '.join(declared.kinds)}, on {declared.panel}")
    for one in models:
        print(f"  {one.arm}, seed {one.seed}{': asked' if one.done else ''}")


def _add(_found: Found, models: list[Asked], folder: Path) -> None:
    for one in models:
        place = folder / "answers" / one.arm / f"seed-{one.seed}.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(one.file, place)


CHECK = FinishedRuns(
    name="corruption",
    folder=FOLDER,
    done="reward models were asked",
    load=load_corruption,
    parts=asked,
    measure=measure,
    read=lambda _config, declared, models: results.read(declared, models),
    to_json=document.to_json,
    to_markdown=document.to_markdown,
    add=_add,
)
