"""A ladder's declaration: which judges follow from it, and what is refused before any work."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rlanything.checks.declaration import check_declaration
from rlanything.checks.ladder.declare import Ladder, Point, load_ladder
from rlanything.checks.ladder.verdict import Criterion, judge
from rlanything.checks.workspace import Workspace
from rlanything.config import parse
from rlanything.core.errors import ConfigError
from rlanything.planning import compose

ROOT = Path(__file__).parents[2]
OWN = ROOT / "experiments" / "check" / "ladder.yaml"


def problem(tmp_path: Path, **changes: object) -> str:
    file = tmp_path / "ladder.yaml"
    file.write_text(yaml.safe_dump({**yaml.safe_load(OWN.read_text()), **changes}))
    with pytest.raises(ConfigError) as caught:
        Workspace.of("case", load_ladder(file), ROOT, ROOT / "params.yaml", 1)
    return str(caught.value)


def test_every_key_of_a_ladder_stands_in_the_projects_own_with_its_explanation():
    text = OWN.read_text()
    assert set(yaml.safe_load(text)) == set(Ladder.model_fields)
    assert load_ladder(OWN).zero == "outcome"


@pytest.mark.parametrize("file", ["fitness.yaml", "ladder.yaml", "written_tests.yaml"])
def test_the_projects_own_ladders_can_be_run(file):
    ladder = load_ladder(OWN.with_name(file))
    config = Workspace.of(file, ladder, ROOT, ROOT / "params.yaml", 1).config
    assert config.judge.writes == ("tests" if file == "written_tests.yaml" else "votes")
    assert 1.0 in ladder.accuracies


def test_each_accuracy_is_run_with_each_share_of_systematic_errors_and_perfect_votes_once():
    ladder = Ladder(accuracies=(1.0, 0.625), systematic=(0.0, 0.5))
    assert ladder.points == (Point(0.625, 0.0), Point(1.0, 0.0), Point(0.625, 0.5))
    assert [point.arm for point in ladder.points] == ["oracle_62p5", "oracle_100", "oracle_62p5_s50"]
    assert ladder.trained == ("outcome", "oracle_62p5", "oracle_100", "oracle_62p5_s50")


def test_the_judges_of_its_arms_are_those_that_it_declares():
    ladder = Ladder(accuracies=(0.85, 1.0), systematic=(0.5,), seeds=4)
    config = parse(compose.compose(ladder.hydra_overrides(3), ROOT))
    found = {point: config.judge_for(config.arm(point.arm)) for point in ladder.points}
    assert [(j.source, j.accuracy, j.systematic) for j in found.values()] == [
        ("oracle", 0.85, 0.5),
        ("oracle", 1.0, 0.0),
    ]
    assert config.judge_for(config.arm("outcome")).source == "model"
    assert (config.train.seeds, config.train.workers) == (4, 3)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"acuracies": [1.0]}, "acuracies: unknown; did you mean 'accuracies'?"),
        ({"accuracies": [0.5, 0.8]}, "accuracies: 1.0 is missing"),
        ({"accuracies": [0.5, 1.5, 1.0]}, "accuracies.1 = 1.5"),
        ({"accuracies": [0.5, 0.5, 1.0]}, "accuracies: 0.5 is there twice"),
        (
            {"accuracies": [0.85, 0.850000001, 1.0]},
            "0.85 and 0.850000001 are too close: both would be the arm 'oracle_85'; keep one of them",
        ),
        ({"accuracies": [0.999999999, 1.0]}, "0.999999999 and 1.0 are too close: both would be the arm"),
        ({"systematic": [0.5, 0.500000001]}, "0.5 and 0.500000001 are too close"),
        ({"compare": ["oracle_85"]}, "compare: 'oracle_85' is the arm of one of the accuracies"),
        ({"seeds": 1}, "seeds = 1"),
        ({"power": {"power": 0.05, "alpha": 0.5}}, "power = 0.05: must be above alpha = 0.5"),
        ({"compare": ["outcome"]}, "compare: 'outcome' is the zero"),
        ({"compare": ["polic"]}, "arm 'polic': unknown; did you mean 'policy'?"),
        ({"compare": ["base_cooled"]}, "'base_cooled' is a control and no arm"),
        ({"zero": "outcom"}, "arm 'outcom': unknown; did you mean 'outcome'?"),
        ({"judged": "ful"}, "arm@arms.oracle_60 = 'ful': unknown; did you mean 'full'?"),
        ({"judged": "policy_reward"}, "its judge is the oracle, which has nothing to train"),
        ({"overrides": ["train.seeds=5"]}, "train.seeds: a check sets it by 'seeds'"),
        ({"overrides": ["signals.lamda=1"]}, "did you mean"),
        ({"overrides": ["evaluate.cooling=null"]}, "ceiling: is measured at its own best temperature"),
        ({"cooling": {"tasks": 3}}, "cooling: unknown"),
        ({"ceiling": {"overrides": ["bootstrap.policy.nose=0"]}}, "did you mean"),
        ({"fitness": {"panel": "indomain"}}, "panel = 'indomain': unknown; did you mean 'in_domain'?"),
        ({"fitness": {"headrom": 0.1}}, "fitness.headrom: unknown; did you mean 'headroom'?"),
        ({"power": {"power": 1.0}}, "power.power = 1.0"),
        ({"overrides": ["model=qwen2.5"]}, "ceiling: only embedded models are supervised"),
    ],
)
def test_a_bad_declaration_is_refused_with_the_key_and_what_is_allowed(tmp_path, changes, expected):
    assert expected in problem(tmp_path, **changes)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        load_ladder(tmp_path / "none.yaml")


def test_published_results_that_are_a_link_are_refused_before_any_work(tmp_path):
    """A new folder would take the place of the link, and then the link could not be removed: at every later start."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "checks").mkdir()
    check_declaration(tmp_path / "mine.yaml", tmp_path, 1)
    (tmp_path / "checks" / "mine").symlink_to(tmp_path / "disk")
    with pytest.raises(ConfigError, match="checks/mine: a link to"):
        check_declaration(tmp_path / "mine.yaml", tmp_path, 1)


@pytest.mark.parametrize(
    ("values", "fit", "words"),
    [
        ((15.0, 20.0), True, "Fit"),
        ((14.9, 20.0), False, "Not fit: a: 14.9, at least 15 is needed."),
        ((15.0, None), None, "Undecided: not measured: b."),
        ((14.0, None), False, "Not fit: a: 14.0, at least 15 is needed."),
    ],
)
def test_a_regime_is_fit_when_every_criterion_is_met(values, fit, words):
    verdict = judge([Criterion("a", values[0], 15), Criterion("b", values[1], 20)])
    assert verdict.fit is fit
    assert verdict.text.startswith(words)
