"""A made-up experiment with everything that a comparison reads: the report's cases, task buffers, provenance."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from buffer_cases import ACCEPTED, event, kitchen, record
from matplotlib.figure import Figure
from report_cases import config, project

from rlanything.buffer import TaskBuffer
from rlanything.compare.comparison import Compared, compare
from rlanything.compare.sides import sides
from rlanything.config import Config
from rlanything.report import exports
from rlanything.report.report_data import gather

ARMS = ("base", "outcome", "policy", "full")


def experiment(root: Path, arms: tuple[str, ...] = ARMS, seeds: int = 2, of: Config | None = None) -> Path:
    """A project; of: its configuration."""
    of = of or config()
    project(root, arms, seeds)
    declare(root, of)
    for arm in arms[1:]:
        for seed in range(seeds):
            start = TaskBuffer.start(kitchen(n, "mug", "cabinet") for n in range(4))
            harder = event(start, seed, ACCEPTED, kitchen(seed, "apple", "fridge"), before=0.9, after=0.4)
            folder = root / "runs" / arm / f"seed-{seed}" / "buffer"
            record(folder, 0, start)
            record(folder, 2, start.apply([harder]), [harder])
        provenance(root, arm, seeds, of)
    return root


def declare(root: Path, of: Config) -> None:
    """params.yaml."""
    (root / "params.yaml").write_text(
        yaml.safe_dump(of.model_dump(mode="json", by_alias=True), sort_keys=False)
    )


def provenance(root: Path, arm: str, seeds: int, of: Config, code: str = "0" * 64) -> None:
    """The record of an arm."""
    kept = {str(seed): {"run_seed": 41 + seed, "sha256": f"{seed}" * 64} for seed in range(seeds)}
    found = {
        "schema": 2, "arm": arm, "fingerprint": arm.ljust(64, "0"), "seeds": kept, "code": {"rlanything/a.py": code},
        "config": of.model_dump(mode="json", by_alias=True), "inputs": {}, "panels": None,
    }  # fmt: skip
    (root / "provenance").mkdir(exist_ok=True)
    (root / "provenance" / f"{arm}.json").write_text(json.dumps(found))


def compared(root: Path, *names: str, revisions: Sequence[str] = ()) -> Compared:
    """A comparison in the project at `root`."""
    return compare(sides(revisions, names, root), root)


def figures_made(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are made from now on."""
    made: list[Figure] = []
    begin = Figure.__init__

    def counted(figure: Figure, *args: Any, **kwargs: Any) -> None:
        made.append(figure)
        begin(figure, *args, **kwargs)

    monkeypatch.setattr(Figure, "__init__", counted)
    return made


def recorded(root: Path, message: str) -> None:
    """Write the numbers of the report, and commit what git keeps."""
    data = gather(config(), root)
    (root / "report" / "plots").mkdir(parents=True, exist_ok=True)
    (root / "report" / "summary.json").write_text(exports.summary_json(data.cells))
    curves = exports.learning_csv(data.curves, data.contents.metrics)
    (root / "report" / "plots" / "learning.csv").write_text(curves)
    commit(root, message)


def commit(root: Path, message: str, author: tuple[str, str] = ("a", "a@b.c")) -> None:
    """Commit report/, provenance/ and params.yaml. author: name and address."""
    who = ["-c", f"user.name={author[0]}", "-c", f"user.email={author[1]}"]
    kept = [name for name in ("report", "provenance", "params.yaml") if (root / name).exists()]
    for words in (["init", "-q"], ["add", *kept], [*who, "commit", "-qm", message]):
        subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)


def keep_experiment(root: Path, name: str) -> None:
    """Make the last commit a DVC experiment of the one before it."""
    git = ["git", "-C", str(root)]
    base = subprocess.run(
        [*git, "rev-parse", "HEAD~1"], check=True, capture_output=True, text=True
    ).stdout.strip()
    for words in (
        ["update-ref", f"refs/exps/{base[:2]}/{base[2:]}/{name}", "HEAD"],
        ["reset", "-q", "--hard", base],
    ):
        subprocess.run([*git, *words], check=True, capture_output=True)
