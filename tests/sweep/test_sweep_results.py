"""What is said of finished trials: means with intervals, paired differences, luck, importances and contours."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution
from optuna.trial import create_trial
from sweep_cases import BASE, GAMES, LAMBDA, declared, make, play, truth, write_results

from rlanything.files.records import write_json, write_lines
from rlanything.report.results.statistics import Estimate, Panel, holm
from rlanything.sweep.declare.metrics import format_estimate
from rlanything.sweep.results.comparisons import confirmation, differences, fresh_means
from rlanything.sweep.results.contour import GRID
from rlanything.sweep.results.document import CORRECTED, LEVEL, LUCK, NO_LUCK, NOT_SHOWN, sentences
from rlanything.sweep.results.importance import FEWEST, importances
from rlanything.sweep.results.matplotlib_figures import draw
from rlanything.sweep.results.plotly_figures import PLOTS
from rlanything.sweep.results.table import summary
from rlanything.sweep.results.views import views
from rlanything.sweep.study.study import SweepStudy
from rlanything.sweep.trials.board import Board
from rlanything.sweep.trials.measure import Measured, cost, curve_panels, measure


def test_the_cost_counts_every_sampled_reply():
    rows = [
        {"status/ok": 10.0, "status/truncated": 6.0, "episode_steps": 5.0, "votes": 20.0},
        {"status/ok": 2.0, "status/truncated": 0.0, "episode_steps": 3.0, "votes": None},
        {"iteration": 2},
    ]
    assert cost(rows) == (10 + 6) * 5 + 20 + 2 * 3


def test_written_tests_are_measured_and_counted(tmp_path):
    sweep = declared(objectives=["ut", "detect", "cost"], overrides=["env=coding"])
    for folder, right in (("a", 3), ("b", 5)):
        seed = {
            "in_domain": {"sum": [1, 0]}, "out_of_domain": {"sort": [0, 0]}, "accepted_tasks": 4,
            "ut": {"sum": [right, 8], "max": [1, 8]}, "detect": {"sum": [2, 8], "max": [0, 0]},
        }  # fmt: skip
        write_json(
            tmp_path / folder / "evaluation" / "full.json", {"arm": "full", "seeds": {"0": seed, "1": seed}}
        )
        for number in (0, 1):
            row = {"iteration": 0, "status/ok": 6.0, "episode_steps": 1.0, "tests": 16.0}
            write_lines(tmp_path / folder / "runs" / "full" / f"seed-{number}" / "metrics.jsonl", [row])
    first, second = (measure(tmp_path / folder, ("full",)) for folder in ("a", "b"))
    assert [first.estimate(goal).mean for goal in sweep.goals] == [4 / 16, 2 / 8, 22]
    assert second.above(first, ("full", "ut")).difference.mean == pytest.approx(2 / 16)
    assert first.estimate(("full", "rm_process")) is None


def test_the_last_evaluations_are_the_mean_of_the_curves_last_points_in_each_seed(tmp_path):
    sweep = declared(last_evaluations=3, objectives=["in_domain", "accepted_tasks"], seeds=2)
    write_results(tmp_path, sweep, {"signals.lambda": 1.0}, range(2))
    curves = {0: {0: 0.9, 5: 0.1, 10: 0.2, 15: 0.3, 20: 0.7}, 1: {0: 0.9, 5: 0.5, 10: 0.5, 15: 0.6, 20: 0.7}}
    for seed, curve in curves.items():
        file = tmp_path / "runs" / "full" / f"seed-{seed}" / "metrics.jsonl"
        rows = [{"iteration": k, "panel/in_domain": curve.get(k)} for k in range(21)]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found, final = measure(tmp_path, ("full",), 3), measure(tmp_path, ("full",))
    estimate = found.estimate(("full", "in_domain"))
    assert estimate.mean == pytest.approx((0.4 + 0.6) / 2)
    assert estimate.low < estimate.mean < estimate.high
    assert found.error(("full", "in_domain")) == pytest.approx(0.1)
    assert found.estimate(("full", "accepted_tasks")) == final.estimate(("full", "accepted_tasks"))
    assert found.estimate(("full", "rm_process")) is None
    assert final.estimate(("full", "rm_process")) is not None


def test_too_few_points_of_a_curve_are_no_result():
    rows = {0: [{"iteration": 0, "panel/in_domain": 0.5}, {"iteration": 1, "panel/in_domain": 0.5}]}
    assert curve_panels(rows, 2) == {}
    assert list(curve_panels(rows, 1)) == ["in_domain"]


@given(
    st.lists(st.lists(st.floats(0.0, 1.0), min_size=3, max_size=9), min_size=1, max_size=4), st.integers(1, 3)
)
@settings(deadline=None, max_examples=50)
def test_the_mean_of_the_last_points_is_that_of_every_seeds_mean(curves, last):
    runs = {
        seed: [{"iteration": k + 1, "panel/in_domain": value} for k, value in enumerate(curve)]
        for seed, curve in enumerate(curves)
    }
    panel = curve_panels(runs, last)["in_domain"]
    assert panel.hits.ravel().tolist() == pytest.approx([sum(c[-last:]) / last for c in curves])


def test_the_interval_holds_the_truth_and_the_mean_is_that_of_the_seeds(board):
    for trial in board.complete():
        measured = board.measured(trial.number)
        found = measured.estimate(("full", "in_domain"))
        panel = measured.panels["full"]["in_domain"]
        seeds = panel.hits[0].sum(axis=1) / panel.totals[0].sum(axis=1)
        assert found.mean == pytest.approx(sum(seeds) / 3) == pytest.approx(trial.values[0])
        assert found.low < found.mean < found.high
    inside = [board.measured(t.number).estimate(("full", "in_domain")) for t in board.complete()]
    held = [
        e.low <= truth(board.sets(t.number)) <= e.high for e, t in zip(inside, board.complete(), strict=True)
    ]
    assert sum(held) >= len(held) - 2


def test_a_trial_against_the_default_is_paired_and_corrected(board):
    default = board.baselines()["default"]
    found = differences(board)
    assert default not in found
    assert set(found) == {t.number for t in board.complete()} - {default}
    for number, difference in found.items():
        means = [board.study.trials()[n].values[0] for n in (number, default)]
        assert difference.difference.mean == pytest.approx(means[0] - means[1])
        own = board.measured(number).above(board.measured(default), ("full", "in_domain"))
        assert difference.p >= own.p
    itself = board.measured(default).above(board.measured(default), ("full", "in_domain"))
    assert (itself.difference.mean, itself.p) == (0.0, None), "equal results are no comparison"
    mirrored = board.measured(default).above(board.measured(0), ("full", "in_domain"))
    assert mirrored.difference.mean == pytest.approx(-found[0].difference.mean)


def test_a_point_that_was_drawn_again_is_no_further_comparison(tmp_path):
    space = {"signals.lambda": [0.25, 0.5, 1.0]}
    board = make(declared(space=space, sampler="random", confirm=0), tmp_path)
    play(board)
    sources = {t.number: board.source(t.number) for t in board.complete()}
    assert len(sources) == 12
    assert len(set(sources.values())) == 3
    found, default = differences(board), board.baselines()["default"]
    assert set(found) == {n for n, s in sources.items() if s != default}
    raw = {
        str(s): board.measured(s).above(board.measured(default), ("full", "in_domain")).p
        for s in set(sources.values()) - {default}
    }
    corrected = holm(raw)
    assert len(corrected) == 2
    assert {n: d.p for n, d in found.items()} == {n: corrected[str(sources[n])] for n in found}


def test_the_winner_meets_both_baselines_on_seeds_that_did_not_choose_it(board):
    winner = board.best().number
    assert board.is_over()
    assert board.fresh.measured(winner).panels["full"]["in_domain"].seeds == (3, 4, 5)
    found = confirmation(board)
    assert {c.baseline for c in found} == {n for n, t in board.baselines().items() if t != winner}
    for c in found:
        assert c.luck.mean == pytest.approx(c.lead.mean - c.fresh.mean)
        widths = [e.high - e.low for e in (c.lead, c.fresh)]
        assert max(widths) < c.luck.high - c.luck.low < sum(widths)
        assert c.luck.low < c.luck.mean < c.luck.high
        again = [measure(board.fresh.folder(n), ("full",)).at((3, 4, 5)) for n in (winner, c.against)]
        means = [m.estimate(("full", "in_domain")).mean for m in again]
        assert c.fresh.mean == pytest.approx(means[0] - means[1])


def test_a_baseline_that_wins_has_its_mean_on_fresh_seeds(tmp_path):
    """There is no lead to report then; the mean is what fresh seeds are for."""
    board = make(declared(confirm=2, budget={"trials": 2}), tmp_path)
    play(board, truth=lambda sets: 0.9 if sets["signals.lambda"] == 0.5 else 0.1)
    assert board.best().number == board.baselines()["default"] == 1
    means = {f.trial: f for f in fresh_means(board)}
    assert {n: f.names for n, f in means.items()} == {1: ("best", "default"), 0: ("paper",)}
    rerun = measure(board.fresh.folder(1), ("full",)).at((3, 4)).estimate(("full", "in_domain"))
    assert means[1].means == {"in_domain": rerun}
    found = summary(board)
    assert found["best"]["fresh"] == found["default"]["fresh"] == {"in_domain": asdict(rerun)}
    said = " ".join(sentences(views(board, "case")))
    assert f"trial 1 (best, default) {format_estimate(rerun, 'in_domain')}" in said


def test_where_paper_default_and_winner_are_one_point_its_fresh_seeds_are_reported(tmp_path):
    base = {**BASE, "signals.lambda": 1.0}
    sweep = declared(confirm=1, budget={"trials": 2})
    board = Board(SweepStudy("case", sweep, base, tmp_path, None))
    play(board)
    assert confirmation(board) == []
    (found,) = fresh_means(board)
    assert found.names == ("best", "paper", "default")
    assert f"trial 0 ({', '.join(found.names)})" in " ".join(sentences(views(board, "case")))


@pytest.mark.long
def test_the_winner_of_equal_points_is_no_discovery(tmp_path):
    """With no difference between points, the winner's lead on fresh seeds is smaller on average: that is the luck."""
    luck = []
    for seed in range(6):
        board = make(declared(seed=seed, startup=99, budget={"trials": 10}), tmp_path / str(seed))
        play(board, truth=lambda sets: 0.5)
        luck += [c.luck.mean for c in confirmation(board)]
    assert sum(luck) / len(luck) > 0.01


def test_the_sentences_claim_no_more_than_the_intervals(board):
    found = views(board, "case")
    said = " ".join(sentences(found))
    leads = [c.fresh for c in found.fresh]
    held = all(e.low > 0 for e in leads)
    assert ("Its lead over trial 1 (default) holds on fresh seeds" in said) == held
    assert (NOT_SHOWN in said) == (not held)
    assert "On fresh seeds" in said


@pytest.mark.parametrize(("half", "expected"), [(0.02, LUCK), (0.2, NO_LUCK)])
def test_luck_is_said_only_beyond_its_interval(board, half, expected):
    """A lead of ten points of which fresh seeds show none, with narrow intervals and with wide ones."""
    found = views(board, "case")
    lead, none = Estimate(0.1, 0.1 - half, 0.1 + half), Estimate(0.0, -half, half)
    made = replace(found.fresh[0], lead=lead, fresh=none)
    said = " ".join(sentences(replace(found, fresh=(made,))))
    assert expected in said
    assert f"+10.0 [{100 * made.luck.low:+.1f}, {100 * made.luck.high:+.1f}]" in said
    assert NOT_SHOWN in said


def test_without_fresh_seeds_the_correction_decides(tmp_path):
    board = make(declared(confirm=0, startup=12), tmp_path)
    play(board)
    found = views(board, "case")
    p = differences(board)[found.best].p
    assert (CORRECTED in sentences(found)) == (p < LEVEL)
    assert (NOT_SHOWN in sentences(found)) == (p >= LEVEL)


def test_the_front_holds_what_no_trial_beats(board):
    found = views(board, "case")
    front = [p for p in found.finished if p.number in found.front]
    for p in found.finished:
        beaten = any(
            q.found[0].mean >= p.found[0].mean and q.found[1].mean <= p.found[1].mean
            and (q.found[0].mean, q.found[1].mean) != (p.found[0].mean, p.found[1].mean)
            for q in found.finished
        )  # fmt: skip
        assert (p in front) == (not beaten)
    assert found.best in found.front


@pytest.mark.long
def test_importances_are_shares_with_intervals_and_find_what_matters(tmp_path):
    board = make(declared(sampler="qmc", budget={"trials": 24}), tmp_path)
    play(board)
    found = views(board, "case").importances
    assert set(found) == {"signals.lambda", "band.centre", "band.width"}
    assert sum(e.mean for e in found.values()) == pytest.approx(1)
    assert max(found, key=lambda n: found[n].mean) == "signals.lambda"
    assert all(0 <= e.low <= e.mean <= e.high <= 1 for e in found.values())


def test_of_too_few_trials_or_one_parameter_no_importance_is_said(tmp_path):
    board = make(declared(budget={"trials": 4}), tmp_path / "few")
    play(board)
    assert views(board, "case").importances == {}
    board = make(declared(space={"signals.lambda": LAMBDA}), tmp_path / "one")
    play(board)
    assert views(board, "case").importances == {}


def test_a_point_that_was_drawn_again_says_nothing_more_about_importance(tmp_path):
    space = {"signals.lambda": [0.25, 0.5, 1.0], "judge.m": [1, 3]}
    board = make(declared(space=space, sampler="random", confirm=0, budget={"trials": 14}), tmp_path)
    play(board)
    assert len(board.complete()) == 14
    assert len({board.source(t.number) for t in board.complete()}) == 6 < FEWEST
    assert views(board, "case").importances == {}


@pytest.mark.parametrize("seeds", [2, 3, 6])
def test_the_standard_error_is_the_spread_of_means_over_new_seeds_and_new_games(seeds):
    """Half of an interval over 1.96 is not: with two seeds it is six times, with three twice as much."""
    rng = np.random.default_rng(seeds)
    means, errors = [], []
    for _ in range(300):
        share = np.clip(0.5 + rng.normal(0, 0.05, (seeds, 1)) + rng.normal(0, 0.2, (1, GAMES)), 0, 1)
        hits = rng.binomial(3, share)[None].astype(float)
        panel = Panel(tuple(range(seeds)), tuple(map(str, range(GAMES))), hits, np.full_like(hits, 3.0))
        measured = Measured({"full": {"in_domain": panel}}, {})
        means.append(measured.estimate(("full", "in_domain")).mean)
        errors.append(measured.error(("full", "in_domain")))
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(means), rel=0.15)


def test_the_contour_passes_through_what_was_measured_and_is_empty_far_away(board):
    (contour,) = views(board, "case").contours
    assert contour.keys == ("adaptation.alpha_low", "adaptation.alpha_high")
    means = [t.values[0] for t in board.complete()]
    seen = contour.surface[contour.surface == contour.surface]
    assert min(means) <= seen.min() <= seen.max() <= max(means)
    assert 0 < len(seen) < GRID**2


def test_thresholds_that_are_declared_apart_have_a_contour_too(tmp_path):
    space = {"adaptation.alpha_low": [0.1, 0.2, 0.3], "adaptation.alpha_high": [0.7, 0.8]}
    board = make(declared(space=space, sampler="grid", confirm=0), tmp_path / "both")
    play(board, truth=lambda sets: sets["adaptation.alpha_low"] + 0.2)
    found = views(board, "case")
    (contour,) = found.contours
    assert contour.keys == tuple(space)
    assert [p.number for p in found.points if p not in contour.trials] == [
        0
    ]  # the paper's, which sets lambda too
    assert (contour.x[0], contour.x[-1], contour.y[0], contour.y[-1]) == (0.1, 0.3, 0.7, 0.8)
    assert contour.surface[0, -1] > contour.surface[0, 0]
    assert "contour.png" in dict(draw(found))
    assert PLOTS["contour"](found) is not None

    one = {"adaptation.alpha_low": [0.1, 0.15, 0.2, 0.3], "adaptation.alpha_high": [0.8]}
    board = make(declared(space=one, sampler="grid", confirm=0), tmp_path / "one")
    play(board, truth=lambda sets: 0.5)
    assert views(board, "case").contours == ()


def test_a_parameter_with_one_value_in_all_trials_has_no_importance():
    wide = FloatDistribution(0, 1)
    trials = [
        create_trial(
            value=k / FEWEST,
            params={"a": k / FEWEST, "b": (3 * k % FEWEST) / FEWEST, "same": 0.5},
            distributions=dict.fromkeys(("a", "b", "same"), wide),
        )
        for k in range(FEWEST)
    ]
    found = importances(trials, [t.values[0] for t in trials], [0.1] * FEWEST, 1)
    assert list(found) == ["a", "b"]
    assert sum(one.mean for one in found.values()) == pytest.approx(1)
    assert importances(trials, [0.0] * FEWEST, [0.0] * FEWEST, 1) == {}, (
        "nothing is known where all are equal"
    )
