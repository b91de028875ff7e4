"""What a sweep publishes: the table, every trial, and the whole study. Nobody else's is replaced."""

from __future__ import annotations

import json
import shlex
import shutil
from contextlib import nullcontext
from types import SimpleNamespace
from unittest.mock import Mock

import polars as pl
import pytest
from optuna.trial import TrialState
from sweep_cases import ROOT, declared, make, play, write_results

from rlanything.cli import main
from rlanything.config import load, parse
from rlanything.planning import compose
from rlanything.runs.layout import Layout
from rlanything.sweep import command
from rlanything.sweep.declare.space import SETS
from rlanything.sweep.errors import SweepStopped
from rlanything.sweep.results.comparisons import differences
from rlanything.sweep.results.document import ITSELF, LEVEL, NO_DEFAULT, config_command, sentences, trials
from rlanything.sweep.results.matplotlib_figures import draw
from rlanything.sweep.results.publish import publish, replaces_nothing_else, stamp
from rlanything.sweep.results.table import summary, table
from rlanything.sweep.results.views import views
from rlanything.sweep.study.study import LABEL


def test_the_table_is_the_same_as_parquet_and_csv(published):
    frame = pl.read_parquet(published / "trials.parquet")
    assert frame.height == 12
    assert frame["trial"].to_list() == list(range(12))
    assert frame["label"].to_list()[:3] == ["paper", "default", None]
    read = pl.read_csv(published / "trials.csv", infer_schema_length=None)
    assert read.columns == frame.columns
    name = "full.in_domain"
    assert (frame[f"{name}.low"] <= frame[name]).all()
    assert read[name].to_list() == frame[name].to_list()


def test_what_is_published_replaces_what_was_there(published):
    names = {p.name for p in published.iterdir()}
    assert names == {
        "best.yaml", "figures", "fresh", "fresh.json", "page.html", "report.md", "study.journal", "summary.json",
        "sweep.yaml", "trials", "trials.csv", "trials.parquet",
    }  # fmt: skip
    assert [p.name for p in published.parent.iterdir()] == ["case"]


def test_every_trial_keeps_its_parameters_metrics_and_buffer(published, board):
    for number in range(12):
        folder = published / "trials" / f"{number:04d}"
        assert json.loads((folder / "params.yaml").read_text()) == board.sets(number)
        assert (folder / "evaluation" / "full.json").is_file()
        for seed in range(3):
            run = folder / "runs" / "full" / f"seed-{seed}"
            assert (run / "buffer" / "events.jsonl").is_file()
            assert (run / "metrics.jsonl").is_file()
    assert json.loads((published / "best.yaml").read_text()) == board.sets(board.best().number)


def test_the_provenance_of_a_trial_and_of_its_fresh_seeds_is_published(tmp_path):
    board = make(declared(confirm=1, budget={"trials": 2}), tmp_path / "study")
    play(board)
    places = [board.trial(0), board.fresh.folder(board.best().number)]
    for place in places:
        of = Layout(place)
        for file in (of.provenance("full"), of.starts("full"), of.measured("full")):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"of {place.name}")
    (tmp_path / "case.yaml").write_text("space: {}\n")
    publish(board, tmp_path / "case.yaml", tmp_path, None)
    there = tmp_path / "sweeps" / "case"
    for place in places:
        published = there / place.relative_to(board.folder) / "provenance"
        assert (published / "full.json").read_text() == f"of {place.name}"
        assert (published / "starts" / "full.json").read_text() == f"of {place.name}"
        assert (published / "starts" / "evaluation" / "full.json").is_file()


def test_the_rollouts_that_a_trial_kept_are_published(tmp_path):
    board = make(declared(confirm=0, budget={"trials": 2}), tmp_path / "study")
    play(board)
    for name in ("rollouts", "checkpoints"):
        place = board.trial(0) / "runs" / "full" / "seed-1" / name
        place.mkdir()
        (place / "iter_0001.jsonl.gz").write_bytes(b"kept")
    (tmp_path / "case.yaml").write_text("space: {}\n")
    publish(board, tmp_path / "case.yaml", tmp_path, None)
    runs = tmp_path / "sweeps" / "case" / "trials" / "0000" / "runs" / "full"
    assert (runs / "seed-1" / "rollouts" / "iter_0001.jsonl.gz").read_bytes() == b"kept"
    assert {p.name for p in (runs / "seed-1").iterdir()} == {"buffer", "metrics.jsonl", "rollouts"}
    assert {p.name for p in (runs / "seed-0").iterdir()} == {"buffer", "metrics.jsonl"}


def test_the_published_study_is_the_whole_study(published, board):
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    storage = JournalStorage(JournalFileBackend(str(published / "study.journal")))
    (name,) = optuna.get_all_study_names(storage)
    copied = optuna.load_study(study_name=name, storage=storage).trials
    assert [(t.values, t.params, t.user_attrs) for t in copied] == [
        (t.values, t.params, t.user_attrs) for t in board.study.trials()
    ]


def test_the_summary_has_the_best_and_the_baselines(board):
    found = summary(board)
    assert found["trials"] == {"complete": 12}
    assert found["best"]["trial"] == board.best().number
    assert found["paper"]["trial"] == 0
    assert found["default"]["in_domain"]["mean"] == board.study.trials()[1].values[0]


def test_every_figure_of_the_report_is_there(published):
    text = (published / "report.md").read_text()
    for name in ("history", "front", "slices", "contour", "importances", "adaptation", "fresh"):
        assert f"(figures/{name}.png)" in text
        assert (published / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (published / "figures" / f"{name}.svg").is_file()


def test_crashed_and_pruned_trials_are_shown_and_left_out_of_the_numbers(tmp_path):
    board = make(declared(budget={"trials": 5}), tmp_path)
    for state in (TrialState.FAIL, TrialState.PRUNED):
        for _ in range(2):
            board.study.ask()
        number = len(board.study.trials()) - 1
        if state == TrialState.FAIL:
            board.study.note(number, error="boom\nOSError: <b>bad</b> | wire 42")
        board.study.tell(number, None, state)
    found = views(board, "case")
    assert found.best is None
    assert found.finished == []
    assert sentences(found) == ["No trial has a result."]
    frame = table(board)
    assert frame["state"].to_list() == ["running", "fail", "running", "pruned"]
    assert "bad" in frame["error"][1]


@pytest.mark.parametrize(("crashed", "said"), [("default", NO_DEFAULT), (None, ITSELF)])
def test_only_the_default_itself_is_called_so(tmp_path, crashed, said):
    board = make(declared(budget={"trials": 2}, confirm=0), tmp_path)
    for _ in range(2):
        trial = board.study.ask()
        label, sets = trial.user_attrs[LABEL], trial.user_attrs[SETS]
        if label == crashed:
            board.study.tell(trial.number, None, TrialState.FAIL)
        else:
            share = 0.9 if label == "default" else 0.1
            write_results(
                board.trial(trial.number), board.sweep, sets, range(3), lambda _, share=share: share
            )
            board.study.tell(trial.number, board.objectives(trial.number), TrialState.COMPLETE)
    assert sentences(views(board, "case"))[-1] == said


def test_what_only_the_papers_point_sets_is_in_the_table(tmp_path):
    """The space has no lambda: without its column the paper's row would look like the default's."""
    board = make(declared(space={"judge.m": [3, 5]}, budget={"trials": 3}, confirm=0), tmp_path)
    play(board, truth=lambda sets: 0.5)
    found = views(board, "case")
    assert found.varied == (["judge.m"] if board.sets(2)["judge.m"] == 5 else [])
    head, rows = trials(found, str)
    column = [row[head.index("signals.lambda")] for row in rows]
    assert column == ["1.0", "–", "–"]
    assert set(dict(draw(found))) >= {"history.png"}


def test_a_column_of_whole_numbers_and_fractions_becomes_one_of_fractions(tmp_path):
    """The first points of a sweep may well be whole numbers: [1, 1, 0.5]."""
    board = make(declared(budget={"trials": 3}), tmp_path)
    for value in (1, 1, 0.5):
        trial = board.study.ask()
        board.study.note(trial.number, seconds=None, sets={"signals.lambda": value})
    column = table(board)["signals.lambda"]
    assert column.to_list() == [1.0, 1.0, 0.5]
    assert column.dtype.is_float()


def test_the_command_for_the_best_setting_gives_it_without_what_only_a_sweep_needs(tmp_path, capsys):
    space = {"signals.lambda": [0.25, 0.5], "adaptation.acceptance": ["paired", "strict"]}
    overrides = ["scale=smoke", "train.save_rollouts=false"]
    sweep = declared(space=space, sampler="grid", confirm=0, seeds=2, overrides=overrides)
    board = make(sweep, tmp_path / "study")
    wanted = {"signals.lambda": 0.25, "adaptation.acceptance": "paired"}
    play(board, truth=lambda sets: 0.9 if sets == wanted else 0.1)
    program, *words = shlex.split(config_command(board))
    assert (program, words[:2]) == ("rlanything", ["config", "write"])
    for name in ("experiments", "envs", "dvc.yaml"):
        (tmp_path / name).symlink_to(ROOT / name)
    assert main(["--root", str(tmp_path), *words]) == 0
    found, default = load(tmp_path / "params.yaml"), parse(compose.compose(["scale=smoke"], ROOT))
    assert (found.signals.lambda_, found.adaptation.acceptance) == (0.25, "paired")
    assert found.train == default.train
    (tmp_path / "case.yaml").write_text("space: {}\n")
    publish(board, tmp_path / "case.yaml", tmp_path, None)
    assert shlex.join([program, *words]) in (tmp_path / "sweeps" / "case" / "report.md").read_text()


def test_a_default_that_wins_needs_no_command(tmp_path):
    board = make(declared(budget={"trials": 2}, confirm=0), tmp_path)
    play(board, truth=lambda sets: 0.9 if sets["signals.lambda"] == 0.5 else 0.1)
    assert config_command(board) is None


def test_many_trials_do_not_drown_what_is_certain(tmp_path):
    """Times the trials (Holm), the p of a great difference stays below the level."""
    board = make(declared(confirm=0, sampler="qmc", seeds=6, budget={"trials": 20}), tmp_path)
    play(board, truth=lambda sets: 0.9 if sets["signals.lambda"] < 0.75 else 0.1)
    p = {n: d.p for n, d in differences(board).items() if board.sets(n)["signals.lambda"] > 0.75}
    assert len(p) > 5
    assert max(p.values()) < LEVEL


def test_a_pruned_trial_says_how_far_it_came(tmp_path):
    board = make(declared(budget={"trials": 3}, pruner="median"), tmp_path)
    for _ in range(3):
        trial = board.study.ask()
    board.study.report(trial.number, [0.1, 0.2])
    board.study.tell(trial.number, None, TrialState.PRUNED)
    assert table(board)["points"].to_list() == [None, None, 2]
    assert views(board, "case").points[2].state == "pruned after 2 points"
    assert board.best() is None


@pytest.mark.long
def test_two_workers_publish_once_and_a_later_start_publishes_again(tmp_path):
    board = make(declared(confirm=0, budget={"trials": 2}), tmp_path / "study")
    play(board)
    file, target = tmp_path / "case.yaml", tmp_path / "sweeps" / "case"
    file.write_text("space: {}\n")
    publish(board, file, tmp_path, None)
    (target / "report.md").write_text("of older code")
    published = stamp(tmp_path, "case")
    publish(board, file, tmp_path, None)  # the second of two that began before there was anything
    assert stamp(tmp_path, "case") == published
    publish(board, file, tmp_path, published)
    assert "older" not in (target / "report.md").read_text()
    (target / "summary.json").write_text('{"trials": {"complete": 1}}')  # another worker had a smaller budget
    publish(board, file, tmp_path, None)
    assert json.loads((target / "summary.json").read_text())["trials"] == {"complete": 2}


def test_a_study_that_ended_early_takes_no_other_studys_results_away(tmp_path):
    board = make(declared(confirm=0, budget={"trials": 2}), tmp_path / "study")
    file, target = tmp_path / "case.yaml", tmp_path / "sweeps" / "case"
    file.write_text("space: {}\n")
    assert replaces_nothing_else(board, tmp_path, "case")
    publish(board, file, tmp_path, None)
    assert replaces_nothing_else(board, tmp_path, "case")
    shutil.rmtree(tmp_path / "study")
    again = make(declared(confirm=0, budget={"trials": 2}), tmp_path / "study")
    assert not replaces_nothing_else(again, tmp_path, "case"), "its key is the same, its trials are others"
    for damage in ("", "{", '{"op_code": 0}\n'):
        (target / "study.journal").write_text(damage)
        assert not replaces_nothing_else(board, tmp_path, "case")
    (target / "study.journal").unlink()
    assert not replaces_nothing_else(board, tmp_path, "case")


@pytest.mark.parametrize("stops", [True, False])
def test_what_a_sweep_replaces_is_said_before_its_work(tmp_path, stops):
    file, said = tmp_path / "case.yaml", []
    file.write_text("space: {}\n")
    sweep = declared(confirm=0, budget={"trials": 2})
    for study in ("one", "two"):
        board = make(sweep, tmp_path / study)
        play(board)
        worker = SimpleNamespace(board=board, work=lambda: said.append("works"))
        if study == "two" and stops:
            worker.work = Mock(side_effect=SweepStopped("the disk is full"))
        with pytest.raises(SweepStopped) if study == "two" and stops else nullcontext():
            command._work(worker, file, tmp_path, said.append)
    place = tmp_path / "sweeps" / "case"
    assert said[0] == "works", "nothing was there"
    assert said[3] == f"{place} has the results of another study; they are replaced when this one is finished"
    kept = f"{place} keeps the results of another study"
    assert (kept in said) == stops
