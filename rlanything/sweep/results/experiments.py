"""The trials of a sweep as DVC experiments: `dvc exp show` lists them, `dvc exp diff` and `apply` take their names.

A DVC experiment is a git commit under refs/exps/ whose parent is the commit that it varies. Here it has the trial's own
files: params.yaml and report/headline.json, from which `dvc exp show` takes its columns, report/summary.json,
report/plots/learning.csv, which `dvc plots` draws, and provenance/<arm>.json; its report.md says no more than whose
they are. What else the stages of the parent wrote (pages, figures, provenance of other arms) is not in it, because it
is not of the trial. dvc.lock stays: it says what the parent's stages were made from. No branch and no file of the
workspace changes.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from rlanything.config import load
from rlanything.core.errors import ConfigError
from rlanything.files.project import PARAMS, SWEEP_EMAIL, SWEEP_NAME
from rlanything.files.reader import read_text
from rlanything.report import exports
from rlanything.report.results.comparison import Comparison
from rlanything.report.results.curves import read_curves
from rlanything.report.results.metrics import metrics_for
from rlanything.runs.layout import Layout
from rlanything.stages.declared import STAGES
from rlanything.sweep.trials.board import Board

AUTHOR = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", SWEEP_NAME), ("EMAIL", SWEEP_EMAIL))
}


REPORT = """# Trial {number} of sweep {name}

headline.json, summary.json, plots/learning.csv and the provenance of its arms are of this trial. There is no other
report of it: `dvc repro` runs the stages with its params.yaml and makes one.
"""


def record(board: Board, name: str, root: Path, say: Callable[[str], None]) -> None:
    """Record every finished trial as the experiment `<name>-<number>`. Raises `ConfigError` outside of git."""
    head = baseline_commit(root)
    trials = [t.number for t in board.complete()]
    for number in trials:
        _record(board, name, number, root, head)
    say(f"{len(trials)} experiments recorded: dvc exp show")


def baseline_commit(root: Path) -> str:
    """The commit that the experiments vary. Raises `ConfigError` where there is none."""
    if Path(_git(root, "rev-parse", "--show-toplevel")).resolve() != root:
        raise ConfigError(f"{root}: experiments need the project to be the top of its git repository")
    return _git(root, "rev-parse", "--verify", "HEAD")


def _record(board: Board, name: str, number: int, root: Path, head: str) -> None:
    from dvc.repo.experiments.refs import ExpRefInfo

    experiment = f"{name}-{number:04d}"
    files = {**_files(board, number), "report/report.md": REPORT.format(number=number, name=name)}
    tree = _tree(root, head, files, board.folder / ".index")
    message = f"sweep: {experiment}"
    commit = _git(root, "commit-tree", tree, "-p", head, "-m", message, env=AUTHOR)
    _git(root, "update-ref", str(ExpRefInfo(baseline_sha=head, name=experiment)), commit)


def _files(board: Board, number: int) -> dict[str, str]:
    """The trial's own files: path in the project -> text."""
    panels = {arm: dict(of) for arm, of in board.measured(number).panels.items()}
    place = board.results(number)
    config = load(place / PARAMS)
    metrics = metrics_for(config)
    cells = Comparison(panels, metrics).cells()
    records = {arm: Layout(place).provenance(arm) for arm in board.sweep.arms}
    return {
        PARAMS: read_text(place / PARAMS),
        "report/headline.json": exports.headline_json(config, cells),
        "report/summary.json": exports.summary_json(cells),
        "report/plots/learning.csv": exports.learning_csv(read_curves(place, board.sweep.arms), metrics),
        **{f"provenance/{arm}.json": read_text(path) for arm, path in records.items() if path.is_file()},
    }


def _tree(root: Path, head: str, files: Mapping[str, str], index: Path) -> str:
    """The tree of `head` with these files in place of what its stages wrote, made in a separate git index."""
    env = {"GIT_INDEX_FILE": str(index)}
    _git(root, "read-tree", head, env=env)
    _git(root, "rm", "-rfq", "--cached", "--ignore-unmatch", "--", *_written(), env=env)
    for name, text in files.items():
        blob = _git(root, "hash-object", "-w", "--stdin", text=text)
        _git(root, "update-index", "--add", "--cacheinfo", f"100644,{blob},{name}", env=env)
    tree = _git(root, "write-tree", env=env)
    index.unlink()
    return tree


def _written() -> list[str]:
    """What stages write and git keeps (`cache: false` in dvc.yaml), as patterns of git's: of every arm."""
    outputs = [out for stage in STAGES for out in (*stage.outs, *stage.metrics, *stage.plots)]
    kept = [name for out in outputs if isinstance(out, dict) for name in out]
    return [re.sub(r"\$\{.*?\}", "*", name) for name in kept]


def _git(root: Path, *arguments: str, text: str | None = None, env: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        ["git", *arguments],
        cwd=root,
        input=text,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | dict(env or {}),
    )
    if done.returncode:
        raise ConfigError(
            f"experiments cannot be recorded: git {arguments[0]} in {root}: {done.stderr.strip()}"
        )
    return done.stdout.strip()
