"""Where a ladder puts measured reward models: at the accuracy of a single vote, and only those that were trained."""

from __future__ import annotations

import json
import shutil
from math import comb
from pathlib import Path

import matplotlib.figure
import pytest
import yaml

from rlanything.checks.ladder import document, figure, results
from rlanything.checks.ladder.declare import load_ladder
from rlanything.checks.ladder.results import Found, Mark, single_vote
from rlanything.config import parse
from rlanything.report.results.evaluations import ReportError

CHECKS = Path(__file__).parents[2] / "checks"


def published(name: str, folder: Path = CHECKS) -> Found:
    place = folder / name
    config = parse(yaml.safe_load((place / "params.yaml").read_text()))
    return results.read(place, load_ladder(place / "ladder.yaml"), config)


@pytest.mark.parametrize("votes", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("q", [0.2, 0.5, 0.75, 0.99])
def test_a_single_vote_of_that_accuracy_gives_the_majority(q, votes):
    """A tie is no right answer."""
    right = sum(comb(votes, k) * q**k * (1 - q) ** (votes - k) for k in range(votes // 2 + 1, votes + 1))
    assert single_vote(right, votes) == pytest.approx(q)


def test_the_ends_stay_where_they_are():
    assert (single_vote(0.0, 3), single_vote(1.0, 3)) == (0.0, 1.0)


def test_a_majority_of_three_is_drawn_at_the_accuracy_of_a_single_vote(monkeypatch):
    found, drawn = published("ladder_former"), []
    mark, _ = found.marks
    assert 100 * mark.accuracy == pytest.approx(85.6, abs=0.05)
    assert 100 * mark.single == pytest.approx(76.1, abs=0.05)
    keep = matplotlib.figure.Figure.savefig
    monkeypatch.setattr(
        matplotlib.figure.Figure, "savefig", lambda f, *a, **k: (drawn.append(f), keep(f, *a, **k))[1]
    )
    list(figure.draw(found))
    for axis in drawn[0].axes:
        assert axis.get_xlabel() == "accuracy of a single vote (%)"
        upright = {line.get_xdata()[0] for line in axis.lines if len(set(line.get_xdata())) == 1}
        assert 100 * mark.single in upright
        assert 100 * mark.accuracy not in upright
        assert figure.mark_text(found.marks) in [text.get_text() for text in axis.texts]
    assert figure.mark_text([mark]) == "reward model of base\n(majority 85.6 %)"
    assert "| the base's | 85.6 | 84.4 | 76.1 |" in document.to_markdown(found, "ladder_former")


def test_a_share_of_right_tests_is_its_own_place():
    for mark in published("written_tests").marks:
        assert mark.single == mark.accuracy
        assert mark.plain is None
    assert figure.mark_text([Mark("policy", 0.3, None, 0.3)]) == "reward model of policy"


def test_a_reward_model_that_was_not_trained_is_neither_drawn_nor_listed():
    place = CHECKS / "fitness"
    data = yaml.safe_load((place / "params.yaml").read_text())
    data["bootstrap"]["reward"]["steps"] = 1
    found = results.read(place, load_ladder(place / "ladder.yaml"), parse(data))
    assert found.marks == ()
    assert "Reward models" not in document.to_markdown(found, "fitness")


def test_marks_that_are_near_to_each_other_have_one_text():
    near = [Mark(arm, q, None, q - 0.1) for arm, q in (("full", 0.871), ("base", 0.86), ("policy", 0.95))]
    groups = figure.beside(near)
    assert [[mark.arm for mark in group] for group in groups] == [["base", "full"], ["policy"]]
    assert figure.mark_text(groups[0]) == "reward model of base, full\n(majority 86.0 to 87.1 %)"


def test_an_arm_without_an_episode_that_counts_is_named(tmp_path):
    """Every episode of a panel may have crashed; then it holds no success and no failure."""
    shutil.copytree(CHECKS / "ladder", tmp_path / "ladder")
    file = tmp_path / "ladder" / "evaluation" / "oracle_60.json"
    found = json.loads(file.read_text())
    for seed in found["seeds"].values():
        seed["out_of_domain"] = {task: [None] * len(tries) for task, tries in seed["out_of_domain"].items()}
    file.write_text(json.dumps(found))
    with pytest.raises(ReportError, match=r"oracle_60\.json: no episode on the panel out_of_domain counts"):
        published("ladder", tmp_path)


def test_episodes_that_crashed_in_a_measurement_are_said(tmp_path):
    shutil.copytree(CHECKS / "ladder_former", tmp_path / "ladder_former")
    evaluation = tmp_path / "ladder_former" / "evaluation" / "outcome.json"
    measured = json.loads(evaluation.read_text())
    measured["seeds"]["0"]["crashed"] = {"in_domain": 3}
    evaluation.write_text(json.dumps(measured))
    found = published("ladder_former", tmp_path)
    said = "`outcome`: 3 episodes of `in_domain` crashed or timed out in the measurement and were left out"
    assert document.to_markdown(found, "ladder_former").count(said) == 1
    assert document.to_json(found)["crashed"] == {"outcome": {"in_domain": 3}}
    assert "crashed" not in document.to_json(published("ladder_former"))
