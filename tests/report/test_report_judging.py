"""Votes of stored rollouts, agreement with labels, theory, limits and cost: known numbers from made-up runs."""

from __future__ import annotations

import csv
import gzip
import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_cases import config, evaluation, project, rollouts, write_evaluation, write_rollouts

from rlanything.config import BASE
from rlanything.report import figures
from rlanything.report.drawn.judging import by_level, hacking_chart
from rlanything.report.health import warnings
from rlanything.report.report_data import gather
from rlanything.report.results.agreement import agreement, kappa
from rlanything.report.results.curves import ends
from rlanything.report.results.evaluations import ReportError
from rlanything.report.results.flattery import flattery
from rlanything.report.results.statistics import Panel
from rlanything.report.results.votes import (
    LEVELS,
    Judgement,
    Stored,
    TaskVotes,
    Window,
    good_share,
    read_votes,
)
from rlanything.report.sections.cost import cost
from rlanything.report.sections.hacking import hacking
from rlanything.report.sections.headline import headline
from rlanything.report.sections.limits import limits
from rlanything.report.sections.theory import theory

CURVES = {"full": {0: {}}}
counts = st.integers(0, 50)


def test_a_share_is_of_the_valid_votes():
    def share(*verdicts):
        return good_share(Judgement.model_validate({"votes": [{"verdict": v} for v in verdicts]}))

    assert share(1, -1, 1, 1) == 0.75
    assert share(1, None) == 1.0
    assert share(None, None) is None
    assert share() is None


def test_only_judged_episodes_that_came_to_an_end_count():
    window = Window()
    line = rollouts("policy", 4)[1]
    for status in ("ok", "truncated", "env_error", "timeout"):
        line["trajectory"]["status"] = status
        window.add(Stored.model_validate(line))
    window.add(Stored.model_validate(line | {"judgements": []}))
    assert window.tasks == {(1, "1" * 64): TaskVotes(episodes=2, solved=2, steps=4, right=4, votes=4.0)}
    assert [(level.steps, level.right) for level in window.levels] == [(0, 0), (0, 0), (0, 0), (0, 0), (4, 4)]


def test_a_step_is_counted_by_how_many_of_its_votes_are_good():
    """A step on which the votes are split belongs to neither side, however many votes there are."""
    window = Window()
    line = rollouts("policy", 4)[1]
    for good, bad in ((0, 3), (1, 2), (1, 3), (1, 1), (2, 2), (2, 1), (3, 1), (2, 0)):
        votes = [{"verdict": 1}] * good + [{"verdict": -1}] * bad
        window.add(Stored.model_validate(line | {"judgements": [{"votes": votes}]}))
    assert [level.steps for level in window.levels] == [1, 2, 2, 2, 1]


def test_a_vote_flatters_as_far_as_it_is_above_the_outcome():
    assert TaskVotes(episodes=4, solved=1, steps=10, right=2, votes=5.0).excess == pytest.approx(0.5 + 0.6)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 20)), min_size=1))
def test_a_judge_who_repeats_outcomes_does_not_flatter_however_long_episodes_are(episodes):
    window = Window()
    line = rollouts("policy", 4)[1]
    for solved, steps in episodes:
        verdict = 1 if solved else -1
        trajectory = line["trajectory"] | {"outcome": verdict}
        judgements = [{"votes": [{"verdict": verdict}]}] * steps
        window.add(Stored.model_validate(line | {"trajectory": trajectory, "judgements": judgements}))
    assert [task.excess for task in window.tasks.values()] == [pytest.approx(0.0, abs=1e-9)]


def test_start_and_end_are_the_first_and_the_last_iterations(tmp_path):
    write_rollouts(tmp_path, "full", 0, iterations=12)
    votes = read_votes(tmp_path, CURVES)
    failed = {end: getattr(votes["full"][0], end).tasks[0, "0" * 64] for end in ("start", "end")}
    assert failed["start"].episodes == failed["end"].episodes == 5
    assert failed["start"].vote < failed["end"].vote == 1.0
    assert [LEVELS[x] for x, level in by_level(votes, "full", "end") if level.steps] == ["all"]


def test_iterations_are_in_the_order_of_their_numbers(tmp_path):
    """After 9999 comes 10000, which has one digit more."""
    write_rollouts(tmp_path, "full", 0, iterations=6)
    folder = tmp_path / "runs/full/seed-0/rollouts"
    found = read_votes(tmp_path, CURVES)
    for number, path in enumerate(sorted(folder.glob("iter_*")), 9_997):
        path.rename(folder / f"iter_{number:04d}.jsonl.gz")
    assert read_votes(tmp_path, CURVES) == found


def test_a_run_without_stored_rollouts_has_no_votes(tmp_path):
    assert read_votes(tmp_path, CURVES) == {}
    write_rollouts(tmp_path, "full", 0, iterations=0)
    assert read_votes(tmp_path, CURVES) == {}


@pytest.mark.parametrize("text", ["{", "[]\n", json.dumps({"trajectory": {}}), json.dumps({"judgements": 1})])
def test_a_broken_file_is_named(tmp_path, text):
    write_rollouts(tmp_path, "full", 0)
    file = tmp_path / "runs/full/seed-0/rollouts/iter_0003.jsonl.gz"
    file.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(ReportError, match=r"rollouts/iter_0003\.jsonl\.gz.*dvc repro train"):
        read_votes(tmp_path, CURVES)


@given(counts, counts, counts, counts)
def test_kappa_is_that_of_its_definition(good_hits, good_misses, bad_hits, bad_misses):
    table = np.array([[good_hits, good_misses], [bad_misses, bad_hits]], dtype=float)
    total = table.sum()
    if total == 0:
        return
    found = kappa(good_hits, good_hits + good_misses, bad_hits, bad_hits + bad_misses)
    expected = float((table.sum(axis=0) * table.sum(axis=1)).sum()) / total**2
    assert -1.0 <= found <= 1.0
    if expected < 1.0:
        assert found == pytest.approx((np.trace(table) / total - expected) / (1 - expected))
    if good_misses == bad_misses == 0 and good_hits and bad_hits:
        assert found == pytest.approx(1.0)


def test_agreement_is_of_good_and_of_bad_steps():
    hits = np.array([[[8.0, 1.0]], [[3.0, 6.0]]])
    totals = np.array([[[10.0, 2.0]], [[6.0, 6.0]]])
    found = agreement(Panel((0,), ("a", "b"), hits, totals))
    assert found.good.mean == pytest.approx(9 / 12)
    assert found.bad.mean == pytest.approx(9 / 12)
    assert found.kappa == (pytest.approx(0.5),)
    assert found.steps == 24


def test_a_seed_without_a_labelled_step_agrees_with_nothing():
    hits = np.array([[[8.0], [0.0]], [[3.0], [0.0]]])
    totals = np.array([[[10.0], [0.0]], [[6.0], [0.0]]])
    alone = agreement(Panel((0,), ("a",), hits[:, :1], totals[:, :1]))
    assert agreement(Panel((0, 1), ("a",), hits, totals)) == alone


def test_ends_are_means_of_five_iterations():
    runs = {0: {"mu": dict.fromkeys(range(5), 1.0) | dict.fromkeys(range(5, 10), 2.0)}, 1: {"mu": {0: 3.0}}}
    assert ends(runs, "mu") == (2.0, 2.5)
    assert ends(runs, "other") is None


@pytest.mark.parametrize(
    ("votes", "success", "since"),
    [
        ([0.0] * 8 + [0.5] * 8, [0.5] * 16, 9),  # the window of iterations 5 to 9 has two of the eight
        ([0.0] * 8 + [0.5] * 8, [0.5] * 15 + [0.6], None),  # success is above its start at the end
        ([0.5] * 16, [0.5] * 8 + [0.1] * 8, None),  # votes do not rise
        ([0.0] * 5 + [0.5] * 8 + [0.0] * 5 + [0.5] * 5, [0.5] * 23, 19),  # what ended before does not count
        ([0.0] * 5 + [0.5] * 4, [0.5] * 9, None),  # too short
        ([], [], None),
    ],
)
def test_the_onset_of_hacking_is_the_first_iteration_from_which_it_lasts(votes, success, since):
    found = flattery(dict(enumerate(votes)), dict(enumerate(success)))
    assert (found and found.since) == since


def test_the_section_says_since_when_votes_flatter_by_arm(tmp_path):
    data = gather(config(), project(tmp_path))
    assert "`policy`: no seed of 3; `policy_reward`: no seed of 3; `full`: no seed of 3." in hacking(data)
    data.curves["full"][1] |= {
        "mean_vote": {i: 0.0 if i < 8 else 0.5 for i in range(16)}, "accuracy": dict.fromkeys(range(16), 0.5)
    }  # fmt: skip
    assert "`full`: seed 1 from iteration 9." in hacking(data)
    assert any("seed 1: the mean vote rose by 0.50" in text for text in warnings(data.curves)["full"])


def test_the_numbers_of_votes_and_outcomes_name_their_iteration(tmp_path):
    data = gather(config(), project(tmp_path))
    chart = hacking_chart(data.curves, data.votes, data.cells)
    rows = list(csv.DictReader(io.StringIO(figures._csv(chart).decode())))
    run = data.curves["full"][1]
    own = [row for row in rows if (row["panel"], row["arm"], row["of"]) == ("iteration", "full", "seed 1")]
    assert [int(row["iteration"]) for row in own] == list(run["mean_vote"])
    assert [float(row["value"]) for row in own] == pytest.approx(list(run["mean_vote"].values()), abs=1e-6)
    assert {row["iteration"] for row in rows if row["panel"] == "task"} == {""}


def test_the_sections_say_it(tmp_path):
    data = gather(config(), project(tmp_path))
    assert "| `full` | 67.1 → 71.9 | 57.1 → 61.9 | 1.24 → 1.34 |" in theory(data)
    assert "0 of 72 | 0.58 → 1.38 |" in theory(data)
    assert "| `full/seed-0 0` | 5 | 0.0 | +0.47 |" in hacking(data)
    assert "`policy/seed-0 0`" not in hacking(data), "its votes are bad"
    assert "| `policy` | 23,040 | 46,080 | 72 |" in cost(data)


def test_only_open_comparisons_are_listed_and_p_is_that_of_the_tables(tmp_path):
    data = gather(config(), project(tmp_path))
    said = limits(data)
    assert "| `policy` against `outcome`, in-domain | +0.5 [-22.0, +22.9] | 1.000 | 29.3 |" in said
    assert "`full` against `base`, in-domain" not in said, "it is clear"
    assert "`policy` against `base`, RM" not in said, "it has the base's reward model"
    cell = data.cells["full"]["rm_outcome"]
    assert f"`full` against `base`, RM outcome | +9.9 [-1.9, +21.7] | {cell.p:.3f} |" in said
    assert "no cooled base was measured" in said


@pytest.mark.parametrize("seeds", [1, 2, 4, 5])
def test_few_seeds_find_a_difference_less_often_than_is_said(tmp_path, seeds):
    said = limits(gather(config(), project(tmp_path, (BASE, "outcome", "policy"), seeds=seeds)))
    assert ("the test is more cautious than that" in said) is (seeds in (2, 4))


def test_one_seed_has_no_smallest_difference(tmp_path):
    said = limits(gather(config(), project(tmp_path, (BASE, "outcome", "policy"), seeds=1)))
    rows = [line for line in said.splitlines() if line.startswith("| `policy` against `outcome`")]
    assert rows
    assert all(row.endswith("| – |") for row in rows)
    assert "with one seed the intervals come from the tasks alone" in said


def test_the_headline_is_of_the_last_arm_of_the_paper(tmp_path):
    project(tmp_path, (BASE, "policy"))
    said = headline(gather(config(), tmp_path))
    assert said.startswith("**`policy`: Accuracy in-domain ")
    assert "no clear difference" in said
    assert "best of the other arms" not in said
    write_evaluation(tmp_path, evaluation("outcome"))
    assert "against `outcome`, the best of the other arms" in headline(gather(config(), tmp_path))
    (tmp_path / "evaluation" / "policy.json").unlink()
    assert headline(gather(config(), tmp_path)) == ""


def test_figures_have_no_date_and_their_numbers_beside_them(reported):
    drawn = {path.name: path.read_bytes() for path in (reported / "report" / "figures").iterdir()}
    assert not [n for n, content in drawn.items() if n.endswith(".pdf") and b"CreationDate" in content]
    rows = list(csv.DictReader(io.StringIO(drawn["theorem_1.csv"].decode())))
    assert {row["panel"] for row in rows} == {"p_plus", "p_minus", "precision", "precision_bound"}
    found = {
        row["x"]: float(row["value"]) for row in rows if row["arm"] == "full" and row["panel"] == "precision"
    }
    assert found["0"] == 0.4
    gains = list(csv.DictReader(io.StringIO(drawn["gains.csv"].decode())))
    ours = {row["arm"]: row["value"] for row in gains if (row["panel"], row["of"]) == ("in_domain", "paper")}
    assert ours == {"policy": "0.121", "policy_reward": "0.166", "full": "0.212"}
    signals = csv.DictReader(io.StringIO(drawn["signals.csv"].decode()))
    assert {row["arm"] for row in signals} == {BASE, "outcome", "policy"}
