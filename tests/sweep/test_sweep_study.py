"""The study that workers share: its first trials, its budget, and its streams of chance."""

from __future__ import annotations

import json

import pytest
from optuna.trial import TrialState
from sweep_cases import BAND, LAMBDA, declared, make, write_results

from rlanything.core.errors import ConfigError
from rlanything.files.reader import FileError
from rlanything.files.records import write_json
from rlanything.sweep.trials import jobs
from rlanything.sweep.trials.board import REPEATS
from rlanything.sweep.trials.jobs import TrialJob
from rlanything.sweep.trials.measure import cost, finished_curve, rows, training_curve
from rlanything.sweep.trials.status import status_line


def test_the_first_trials_are_the_paper_and_the_default(tmp_path):
    board = make(declared(), tmp_path)
    first, second, third = (board.study.ask() for _ in range(3))
    assert (first.number, first.user_attrs["label"]) == (0, "paper")
    assert (second.number, second.user_attrs["label"]) == (1, "default")
    assert first.params == {"signals.lambda": 1.0, "band.centre": 0.5, "band.width": 0.6}
    assert "label" not in third.user_attrs
    assert set(third.user_attrs["sets"]) == {
        "signals.lambda", "adaptation.alpha_low", "adaptation.alpha_high"
    }  # fmt: skip


@pytest.mark.parametrize("sampler", ["tpe", "gp", "nsga2", "qmc", "random"])
def test_every_sampler_fills_its_budget_with_different_points(tmp_path, sampler):
    board = make(declared(sampler=sampler, startup=3, budget={"trials": 8}), tmp_path)
    seen = []
    while (trial := board.study.ask()) is not None:
        seen.append(json.dumps(trial.user_attrs["sets"], sort_keys=True))
        board.study.tell(trial.number, [0.5 + 0.01 * trial.number], TrialState.COMPLETE)
    assert len(seen) == len(set(seen)) == 8


@pytest.mark.parametrize("sampler", ["tpe", "nsga2", "qmc", "random"])
def test_a_baseline_outside_of_the_space_stops_no_sampler(tmp_path, sampler):
    sweep = declared(
        sampler=sampler, startup=2, budget={"trials": 7}, space={"judge.m": [1, 2, 4], "band": BAND}
    )
    board = make(sweep, tmp_path)
    while (trial := board.study.ask()) is not None:
        assert (trial.params == {}) == (trial.number < 2)
        board.study.tell(trial.number, [0.1 * trial.number], TrialState.COMPLETE)
    assert len(board.study.trials()) == 7


def test_a_trial_draws_the_same_whoever_asks(tmp_path):
    """Two studies with the same finished trials give the same next point; another seed gives another."""
    drawn = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        board = make(declared(seed=seed, startup=2), tmp_path / name)
        for value in (0.5, 0.4, 0.6):
            trial = board.study.ask()
            board.study.tell(trial.number, [value], TrialState.COMPLETE)
        drawn.append(board.study.ask().user_attrs["sets"])
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize("sampler", ["random", "qmc"])
def test_what_does_not_learn_draws_the_same_points_whatever_is_finished(tmp_path, sampler):
    calm, busy = (make(declared(sampler=sampler), tmp_path / name) for name in ("calm", "busy"))
    for _ in range(8):
        calm.study.tell(calm.study.ask().number, [0.5], TrialState.COMPLETE)
        busy.study.ask()
    drawn = [[t.user_attrs["sets"] for t in board.study.trials()] for board in (calm, busy)]
    assert drawn[0] == drawn[1]


def test_tpe_keeps_away_from_where_another_trial_is_running(tmp_path):
    """With and without a running trial beside it, the same finished ones give another point."""
    drawn = []
    for name, state in (("beside", None), ("alone", TrialState.FAIL)):
        board = make(declared(startup=2), tmp_path / name)
        for value in (0.5, 0.4, 0.6, 0.7):
            board.study.tell(board.study.ask().number, [value], TrialState.COMPLETE)
        running = board.study.ask()
        if state is not None:
            board.study.tell(running.number, None, state)
        drawn.append((running.user_attrs["sets"], board.study.ask().user_attrs["sets"]))
    (first, beside), (same, alone) = drawn
    assert first == same
    assert beside != alone


def test_a_point_that_could_not_be_measured_moves_no_other_one(tmp_path):
    """A pruner compares the points of the same number: they have the same draws."""
    rows = [{"iteration": k, "panel/rm_pairwise": value} for k, value in ((0, 0.5), (5, None), (10, 0.7))]
    for place, row in enumerate([*rows[:2], {"iteration": 6}, rows[2]]):
        write_json(tmp_path / "seed-0" / "iterations" / f"{place:04d}" / "metrics.json", row)
    curve = training_curve([tmp_path / "seed-0"], "rm_pairwise")
    assert curve == [None, 0.7]
    board = make(declared(pruner="median"), tmp_path / "sweep")
    trial = board.study.ask()
    assert not board.study.report(trial.number, curve)
    assert board.study.trials()[0].intermediate_values == {1: 0.7}


def test_a_training_that_ends_while_its_curve_is_read_ends_no_sweep(tmp_path, monkeypatch):
    """It renames its live folder, and then removes that file by file."""
    board = make(declared(pruner="median"), tmp_path / "sweep")
    job = TrialJob(board, board.study.ask())
    job.command = ("train", "--arm", "full")
    seed = job.folder.path / ".rla" / "live" / "key" / "full" / "seed-0"
    for name, row in (("0000", {"iteration": 0}), ("0001", {"iteration": 5, "panel/in_domain": 0.5})):
        write_json(seed / "iterations" / name / "metrics.json", row)

    def end(*_: object) -> None:
        live = seed.parents[1]
        live.rename(live.with_name(".gone-key"))
        raise FileError(f"{seed}: no such file")

    assert job.folder.live("full")[0] == seed
    with monkeypatch.context() as patch:
        patch.setattr(jobs, "training_curve", end)
        assert job.prune(lambda: None) is None
    assert not job.folder.live("full")[0].exists(), "what is being removed is no training"
    assert board.study.trials()[0].state == TrialState.RUNNING


def test_a_training_that_cannot_be_read_is_named(tmp_path):
    board = make(declared(pruner="median"), tmp_path / "sweep")
    job = TrialJob(board, board.study.ask())
    job.command = ("train", "--arm", "full")
    iteration = job.folder.path / ".rla" / "live" / "key" / "full" / "seed-0" / "iterations" / "0000"
    iteration.mkdir(parents=True)
    (iteration / "metrics.json").write_text("{")
    with pytest.raises(FileError, match=r"metrics\.json"):
        job.prune(lambda: None)


def test_a_seed_that_was_taken_over_keeps_its_place_in_the_curve(tmp_path):
    points = {"seed-0": (0.1, 0.2), "seed-1": (0.3, 0.4)}
    for seed, values in points.items():
        finished = tmp_path / seed / "finished"
        finished.mkdir(parents=True)
        lines = [{"iteration": k, "panel/in_domain": v} for k, v in enumerate((0.0, *values))]
        (finished / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    row = {"iteration": 1, "panel/in_domain": 0.5}
    write_json(tmp_path / "seed-2" / "iterations" / "0001" / "metrics.json", row)
    seeds = [tmp_path / f"seed-{k}" for k in range(4)]
    assert training_curve(seeds, "in_domain") == [0.1, 0.2, 0.3, 0.4, 0.5]


@pytest.mark.parametrize(
    "row", ['{"iteration": 5, "panel/rm_pairwise": Infinity}', '{"panel/rm_pairwise": 0.5}']
)
def test_a_row_that_no_run_writes_is_named(tmp_path, row):
    for name, read in (("iterations/0000/metrics.json", training_curve), ("metrics.jsonl", finished_curve)):
        place = tmp_path / "seed-0" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(row)
        with pytest.raises(
            FileError, match=rf"{place.name}.*: .*'(panel/rm_pairwise|iteration)' is (Infinity|null)"
        ):
            read([tmp_path / "seed-0"], "rm_pairwise")


def test_what_was_not_measured_costs_nothing(tmp_path):
    (tmp_path / "metrics.jsonl").write_text(
        '{"iteration": 0, "status/ok": 4, "status/truncated": null, "episode_steps": 3, "votes": NaN, "tests": 2}'
    )
    assert cost(rows(tmp_path)) == 14


def test_a_trial_that_was_not_drawn_to_the_end_is_completed(tmp_path):
    """What a worker leaves that is killed between two draws."""
    board = make(declared(), tmp_path)
    for _ in range(2):
        board.study.tell(board.study.ask().number, [0.5], TrialState.COMPLETE)
    left = board.study.study.ask()
    left.suggest_float("signals.lambda", 0.25, 4.0, log=True)
    drawn = left.params["signals.lambda"]
    trial = make(declared(), tmp_path).study.resume(left.number)
    assert trial.params["signals.lambda"] == drawn
    assert set(trial.params) == {"signals.lambda", "band.centre", "band.width"}
    assert trial.user_attrs["sets"]["signals.lambda"] == pytest.approx(drawn, rel=1e-3)


def test_an_interrupted_start_is_finished_once(tmp_path):
    sweep = declared(sampler="grid", space={"signals.lambda": [0.25, 0.5, 1.0, 2.0]})
    whole = make(sweep, tmp_path / "a")
    part = make(sweep, tmp_path / "b")
    part.study._starts = part.study._starts[:2]
    again = make(sweep, tmp_path / "b")
    numbers = [[t.user_attrs["sets"] for t in board.study.trials()] for board in (whole, again)]
    assert numbers[0] == numbers[1]
    assert len(numbers[0]) == 4


def test_a_study_with_another_space_is_refused(tmp_path):
    make(declared(), tmp_path)
    make(declared(budget={"trials": 99}, confirm=0), tmp_path)
    other = declared(space={"signals.lambda": {**LAMBDA, "high": 8.0}, "band": BAND})
    with pytest.raises(ConfigError) as caught:
        make(other, tmp_path)
    assert "was declared differently" in str(caught.value)
    assert "space: there" in str(caught.value)
    assert f"delete that study and the folder with its trials, {tmp_path}." in str(caught.value)
    with pytest.raises(ConfigError, match="objectives: there"):
        make(declared(objectives="rm_process"), tmp_path)
    with pytest.raises(ConfigError, match="seed: there 0, here 1"):
        make(declared(seed=1), tmp_path)


def test_a_baseline_or_point_of_a_grid_that_crashed_is_tried_again_with_the_next_start(tmp_path):
    sweep = declared(sampler="grid", space={"signals.lambda": [0.25, 0.5, 1.0]})
    board = make(sweep, tmp_path)
    for state in (TrialState.FAIL, TrialState.COMPLETE, TrialState.FAIL):
        number = board.study.ask().number
        board.study.tell(number, [0.5] if state == TrialState.COMPLETE else None, state)
    assert board.trials_over()
    again = make(sweep, tmp_path)
    assert not again.trials_over()
    asked = [again.study.ask() for _ in range(2)]
    assert [(t.number, t.user_attrs["label"], t.user_attrs["sets"]) for t in asked] == [
        (3, "paper", {"signals.lambda": 1.0}), (4, "", {"signals.lambda": 0.25})
    ]  # fmt: skip
    assert again.study.ask() is None
    assert len(make(sweep, tmp_path).study.trials()) == 5  # they are running: nothing to queue
    again.study.tell(3, [0.6], TrialState.COMPLETE)
    assert again.baselines() == {"default": 1, "paper": 3}


def test_a_space_with_nothing_new_ends_a_budget_of_minutes(tmp_path):
    board = make(declared(sampler="random", space={"judge.m": [3]}, budget={"minutes": 60}), tmp_path)
    for _ in range(2 + REPEATS):
        assert not board.trials_over()
        number = board.study.ask().number
        twin = board.same_point(number)
        if twin is not None:
            board.study.note(number, same_as=board.source(twin.number))
        board.study.tell(number, [0.5], TrialState.COMPLETE)
    assert board.trials_over()


def test_the_time_left_is_said_for_either_budget(tmp_path):
    for name, budget in (("trials", {"trials": 5}), ("minutes", {"minutes": 5.0})):
        board = make(declared(budget=budget, confirm=0), tmp_path / name)
        assert "left" not in status_line(board, {}, 1)
        board.study.ask()
        write_results(board.trial(0), board.sweep, board.sets(0), range(3))
        board.study.note(0, seconds=60.0)
        board.study.tell(0, [0.5], TrialState.COMPLETE)
        board.study.ask()
        assert status_line(board, {}, 1).endswith("about 4 min left")
        assert status_line(board, {1: 0.5}, 2).endswith("about 2 min left")


def test_crashes_in_a_row_are_counted_from_the_start_of_the_worker(tmp_path):
    board = make(declared(), tmp_path)
    numbers = [board.study.ask().number for _ in range(3)]
    board.study.tell(numbers[0], None, TrialState.FAIL)
    before = board.ended()
    for number in reversed(numbers[1:]):
        board.study.tell(number, None, TrialState.FAIL)
    assert [t.number for t in board.last_ended(3, before)] == [2, 1]
    assert [t.number for t in board.last_ended(2, set())] == [2, 1]


def test_a_budget_of_minutes_counts_what_the_trials_took(tmp_path):
    board = make(declared(budget={"minutes": 2.0}), tmp_path)
    for _ in range(2):
        assert not board.trials_over()
        trial = board.study.ask()
        board.study.note(trial.number, seconds=70.0)
        board.study.tell(trial.number, [0.5], TrialState.COMPLETE)
    assert board.spent_s() == 140
    assert board.trials_over()
    assert board.study.limit is None


def test_the_same_point_twice_is_trained_once(tmp_path):
    sweep = declared(sampler="random", space={"judge.m": [1, 3]}, budget={"trials": 4})
    board = make(sweep, tmp_path)
    first = board.study.ask()
    board.study.tell(first.number, [0.5], TrialState.COMPLETE)
    later = [board.study.ask() for _ in range(3)]
    twins = [t for t in later if t.user_attrs["sets"] == first.user_attrs["sets"]]
    assert [board.same_point(t.number).number for t in twins] == [0] * len(twins)
    default = later[0].number
    assert board.same_point(default) is None
    waits = [t for t in later[1:] if t.user_attrs["sets"] == later[0].user_attrs["sets"]]
    assert [board.same_point(t.number).number for t in waits] == [default] * len(waits)
    assert waits
