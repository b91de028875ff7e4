"""Publishing a finished sweep: sweeps/<name>/ appears whole or not at all (its format: docs/sweeps.md)."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from rlanything.stages import locks, sweepkey
from rlanything.stages.layout import Layout, write_bytes, write_json, write_text
from rlanything.sweep.board import ERROR, Board
from rlanything.sweep.study import JOURNAL
from rlanything.sweep.table import confirmation, summary, table

RESULTS = "sweeps"
PATIENCE_S = 600.0
"""How long a worker waits while another one publishes."""


def stamp(root: Path, name: str) -> int | None:
    """Changes when sweeps/<name>/ is published; None while it is not there."""
    target = root / RESULTS / name
    return target.stat().st_ctime_ns if target.is_dir() else None


def publish(board: Board, declared: Path, root: Path, before: int | None) -> None:
    """Write sweeps/<name>/, unless another worker of this project did so a moment ago.

    Args:
        board: the finished sweep.
        declared: its file.
        root: the project.
        before: `stamp` when this worker began.
    """
    name = declared.stem
    folder = root / ".rla" / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with locks.held(
        folder / f"publish-{name}", f"{root / RESULTS / name}: another worker publishes it", PATIENCE_S
    ):
        if stamp(root, name) in (None, before) or not _current(board, root / RESULTS / name):
            _publish(board, declared, root / RESULTS / name)


def replaces(board: Board, root: Path, name: str) -> bool:
    """Whether nothing is published of that name, or something of the same study: nothing else is lost by publishing."""
    target = root / RESULTS / name
    if not target.exists():
        return True
    mine, there = board.folder / sweepkey.FILE, target / sweepkey.FILE
    return mine.is_file() and there.is_file() and mine.read_bytes() == there.read_bytes()


def _current(board: Board, target: Path) -> bool:
    """Whether what is published says the same of the trials as the study does."""
    path = target / "summary.json"
    return path.is_file() and json.loads(path.read_text()) == json.loads(json.dumps(summary(board)))


def _publish(board: Board, declared: Path, target: Path) -> None:
    temporary = target.with_name(f".tmp-{target.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    shutil.copyfile(declared, temporary / "sweep.yaml")
    if (board.folder / sweepkey.FILE).is_file():
        shutil.copyfile(board.folder / sweepkey.FILE, temporary / sweepkey.FILE)
    _study(board, temporary / JOURNAL)
    _numbers(board, temporary)
    _trials(board, temporary)
    _documents(board, declared.stem, temporary)
    gone = target.with_name(f".gone-{target.name}")
    shutil.rmtree(gone, ignore_errors=True)
    if target.exists():
        os.rename(target, gone)
    os.rename(temporary, target)
    shutil.rmtree(gone, ignore_errors=True)


def _study(board: Board, path: Path) -> None:
    """The study as a journal file, whatever it was stored in: optuna-dashboard opens it."""
    to = JournalStorage(JournalFileBackend(str(path)))
    source = board.study.study
    optuna.copy_study(
        from_study_name=source.study_name,
        from_storage=source._storage,
        to_storage=to,
        to_study_name=source.study_name,
    )


def _numbers(board: Board, folder: Path) -> None:
    frame = table(board)
    frame.write_parquet(folder / "trials.parquet")
    frame.write_csv(folder / "trials.csv")
    write_json(folder / "summary.json", summary(board))
    rows = [found.row() for found in confirmation(board)]
    write_text(folder / "fresh.json", json.dumps(rows, indent=2) + "\n")
    best = board.best()
    if best is not None:
        shutil.copyfile(board.results(best.number) / "params.yaml", folder / "best.yaml")


def _trials(board: Board, folder: Path) -> None:
    """Every trial: its configuration, and metrics, evaluation and buffers; of a crashed one its log."""
    for trial in board.study.trials():
        source, target = board.results(trial.number), folder / "trials" / f"{trial.number:04d}"
        if not (source / "params.yaml").is_file():
            continue
        target.mkdir(parents=True)
        shutil.copyfile(source / "params.yaml", target / "params.yaml")
        if trial.state == TrialState.COMPLETE:
            _outputs(board, source, target)
        elif (source / "log.txt").is_file():
            shutil.copyfile(source / "log.txt", target / "log.txt")
    for number in board.candidates():
        _fresh(board, number, folder / "fresh" / f"{number:04d}")


def _fresh(board: Board, number: int, target: Path) -> None:
    """A trial's run on fresh seeds, or the log of its crash."""
    source = board.fresh(number)
    crashed = board.fresh_error(number) is not None
    if not crashed and board.measured_fresh(number) is None:
        return
    target.mkdir(parents=True)
    kept = ("params.yaml", "log.txt", ERROR) if crashed else ("params.yaml",)
    for file in kept:
        if (source / file).is_file():
            shutil.copyfile(source / file, target / file)
    if not crashed:
        _outputs(board, source, target)


def _outputs(board: Board, source: Path, target: Path) -> None:
    for arm in board.sweep.arms:
        evaluation = Layout(target).evaluation(arm)
        evaluation.parent.mkdir(exist_ok=True)
        shutil.copyfile(Layout(source).evaluation(arm), evaluation)
        for run in sorted((source / "runs" / arm).glob("seed-*")):
            kept = target / "runs" / arm / run.name
            shutil.copytree(run / "buffer", kept / "buffer")
            shutil.copyfile(run / "metrics.jsonl", kept / "metrics.jsonl")


def _documents(board: Board, name: str, folder: Path) -> None:
    from rlanything.sweep import document, page, pictures
    from rlanything.sweep.views import views

    shown = views(board, name)
    drawn = dict(pictures.draw(shown))
    for file, content in drawn.items():
        write_bytes(folder / "figures" / file, content)
    figures = dict.fromkeys(file.partition(".")[0] for file in drawn)
    write_text(folder / "report.md", document.text(board, name, shown, list(figures)))
    write_text(folder / "page.html", page.html(board, name, shown))
