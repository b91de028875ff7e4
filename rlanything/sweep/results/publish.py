"""Publishing a sweep: sweeps/<name>/ appears whole or not at all. docs/sweeps.md has its format."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from rlanything.files import atomic, locks
from rlanything.files.project import PARAMS, PRIVATE
from rlanything.files.reader import read_json
from rlanything.files.records import write_json
from rlanything.runs.layout import Layout
from rlanything.sweep.results import matplotlib_figures
from rlanything.sweep.results.comparisons import confirmation, fresh_means
from rlanything.sweep.results.document import report_markdown
from rlanything.sweep.results.page import page_html
from rlanything.sweep.results.table import summary, table
from rlanything.sweep.results.views import views
from rlanything.sweep.study.storage import JOURNAL
from rlanything.sweep.study.study import FOLDER
from rlanything.sweep.trials import key
from rlanything.sweep.trials.board import Board
from rlanything.sweep.trials.fresh import ERROR

METRICS = "metrics.jsonl"
RECORDS = ("buffer", "rollouts", "tests", "critics", "images")
"""What is published of a run: its metrics and these folders, all but the first as far as it kept them
(`train.save_rollouts`)."""
PATIENCE_S = 600.0
"""How long a worker waits while another one publishes."""


def published_folder(root: Path, name: str) -> Path:
    """Where the sweep of this name is published in a project."""
    return root / "sweeps" / name


def stamp(root: Path, name: str) -> int | None:
    """A number that changes when the sweep is published; None where nothing is."""
    target = published_folder(root, name)
    return target.stat().st_ctime_ns if target.is_dir() else None


def publish(board: Board, declared: Path, root: Path, before: int | None) -> None:
    """Write sweeps/<name>/, unless another worker of this project has just done so.

    Args:
        board: the finished sweep.
        declared: its file.
        root: the project.
        before: `stamp` when this worker began.
    """
    name = declared.stem
    target, folder = published_folder(root, name), root / PRIVATE / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with locks.held(folder / f"publish-{name}", f"{target}: another worker publishes it", PATIENCE_S):
        if stamp(root, name) in (None, before) or not _current(board, target):
            with atomic.whole(target) as temporary:
                _write(board, declared, temporary)


def replaces_nothing_else(board: Board, root: Path, name: str) -> bool:
    """Whether nothing is published under that name, or results of the same study.

    A study whose folder was removed and made again has the same key and other trials.
    """
    target = published_folder(root, name)
    return not target.exists() or _identity(target / JOURNAL) == board.study.study.user_attrs[FOLDER]


def _identity(path: Path) -> str | None:
    """What the study in a published journal is known by; None where no study can be read there."""
    if not path.is_file():
        return None
    try:
        (study,) = JournalStorage(JournalFileBackend(str(path))).get_all_studies()
    except (ValueError, KeyError):  # no journal, or not of one study
        return None
    found: str | None = study.user_attrs.get(FOLDER)
    return found


def _current(board: Board, target: Path) -> bool:
    """Whether the published summary is that of the study."""
    path = target / "summary.json"
    return path.is_file() and read_json(path) == json.loads(json.dumps(summary(board)))


def _write(board: Board, declared: Path, folder: Path) -> None:
    shutil.copyfile(declared, folder / "sweep.yaml")
    if (board.folder / key.FILE).is_file():
        shutil.copyfile(board.folder / key.FILE, folder / key.FILE)
    _write_study(board, folder / JOURNAL)
    _write_numbers(board, folder)
    _write_trials(board, folder)
    _write_documents(board, declared.stem, folder)


def _write_study(board: Board, path: Path) -> None:
    """The study as a journal file, whatever its storage: optuna-dashboard opens it."""
    to = JournalStorage(JournalFileBackend(str(path)))
    name = board.study.name
    optuna.copy_study(
        from_study_name=name, from_storage=board.study.storage, to_storage=to, to_study_name=name
    )


def _write_numbers(board: Board, folder: Path) -> None:
    frame = table(board)
    frame.write_parquet(folder / "trials.parquet")
    frame.write_csv(folder / "trials.csv")
    write_json(folder / "summary.json", summary(board))
    leads = [found.to_json() for found in confirmation(board)]
    write_json(folder / "fresh.json", {"means": list(map(asdict, fresh_means(board))), "leads": leads})
    best = board.best()
    if best is not None:
        shutil.copyfile(board.results(best.number) / PARAMS, folder / "best.yaml")


def _write_trials(board: Board, folder: Path) -> None:
    """Every trial: its configuration, and metrics, evaluation, buffers and provenance; of a crashed one its log."""
    for trial in board.study.trials():
        source, target = board.results(trial.number), folder / "trials" / f"{trial.number:04d}"
        if not (source / PARAMS).is_file():
            continue
        target.mkdir(parents=True)
        shutil.copyfile(source / PARAMS, target / PARAMS)
        if trial.state == TrialState.COMPLETE:
            _copy_outputs(board, source, target)
        elif (source / "log.txt").is_file():
            shutil.copyfile(source / "log.txt", target / "log.txt")
    for number in board.candidates():
        _write_fresh(board, number, folder / "fresh" / f"{number:04d}")


def _write_fresh(board: Board, number: int, target: Path) -> None:
    """A trial's run on fresh seeds, or the log of its crash."""
    source = board.fresh.folder(number)
    crashed = board.fresh.error(number) is not None
    if not crashed and not board.fresh.is_finished(number):
        return
    target.mkdir(parents=True)
    kept = (PARAMS, "log.txt", ERROR) if crashed else (PARAMS,)
    for file in kept:
        if (source / file).is_file():
            shutil.copyfile(source / file, target / file)
    if not crashed:
        _copy_outputs(board, source, target)


def _copy_outputs(board: Board, source: Path, target: Path) -> None:
    for arm in board.sweep.arms:
        evaluation = Layout(target).evaluation(arm)
        evaluation.parent.mkdir(exist_ok=True)
        shutil.copyfile(Layout(source).evaluation(arm), evaluation)
        there = Layout(source)
        for record in (there.provenance(arm), there.starts(arm), there.measured(arm)):
            if record.is_file():
                kept = target / record.relative_to(source)
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(record, kept)
        for run in sorted((source / "runs" / arm).glob("seed-*")):
            kept = target / "runs" / arm / run.name
            for name in RECORDS:
                if (run / name).is_dir():
                    shutil.copytree(run / name, kept / name)
            shutil.copyfile(run / METRICS, kept / METRICS)


def _write_documents(board: Board, name: str, folder: Path) -> None:
    shown = views(board, name)
    drawn = dict(matplotlib_figures.draw(shown))
    (folder / "figures").mkdir()
    for file, content in drawn.items():
        (folder / "figures" / file).write_bytes(content)
    figures = dict.fromkeys(file.partition(".")[0] for file in drawn)
    (folder / "report.md").write_text(report_markdown(board, name, shown, list(figures)))
    (folder / "page.html").write_text(page_html(board, name, shown))
