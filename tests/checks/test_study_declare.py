"""A study's declaration, its registration, and what follows from a difference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from rlanything.checks.study.declare import Study, load_study
from rlanything.checks.study.registration import FILE, register, registered
from rlanything.checks.study.verdict import Verdict, decide
from rlanything.checks.workspace import Workspace
from rlanything.core.errors import ConfigError
from rlanything.report.results.statistics import Contrast, Estimate

ROOT = Path(__file__).parents[2]
OWN = ROOT / "experiments" / "check" / "study.yaml"


def space_of(study: Study) -> Workspace:
    return Workspace.of("case", study, ROOT, ROOT / "params.yaml", 1)


def declared(tmp_path: Path, **changes: object) -> Study:
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump({**yaml.safe_load(OWN.read_text()), **changes}))
    return load_study(file)


def test_every_key_of_a_study_stands_in_the_projects_own():
    assert set(yaml.safe_load(OWN.read_text())) == set(Study.model_fields)


def test_the_projects_own_can_be_run_and_trains_what_its_hypotheses_compare():
    study = load_study(OWN)
    config = space_of(study).config
    assert config.train.seeds == study.seeds >= 8
    assert config.judge_for(config.arm("oracle_75")).accuracy == 0.75
    assert config.judge_for(config.arm("full")).source == "model"
    assert set(study.trained) == {
        *("outcome", "dynamic_sampling", "policy", "policy_reward", "full", "step_only"),
        *("oracle_75", "oracle_100"),
    }


def test_the_shortest_study_can_be_run_too():
    study = load_study(OWN.with_name("table1.yaml"))
    assert study.trained == tuple(space_of(study).config.arms)


def hypothesis(**changes: object) -> dict[str, object]:
    said = {"claim": "It is.", "arm": "policy", "over": "outcome", "metric": "in_domain", **changes}
    return {"hypotheses": {"one": said}}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (hypothesis(arm="polic"), "hypotheses.one.arm = 'polic': unknown; did you mean 'policy'?"),
        (hypothesis(over="ceiling"), "hypotheses.one.over = 'ceiling': unknown"),
        (hypothesis(over="policy"), "hypotheses.one: 'policy' is compared with itself"),
        (
            hypothesis(metric="indomain"),
            "hypotheses.one.metric = 'indomain': unknown; did you mean 'in_domain'?",
        ),
        (hypothesis(clam="x"), "hypotheses.one.clam: unknown; did you mean 'claim'?"),
        (hypothesis(smallest=0), "hypotheses.one.smallest = 0"),
        ({"hypotheses": {}}, "hypotheses"),
        ({"arms": ["outcome", "outcome", "policy"], **hypothesis()}, "arms: 'outcome' is there twice"),
        ({"arms": ["outcome", "base", "policy"], **hypothesis()}, "arms: 'base' is a control and no arm"),
        (
            {"arms": ["step_only", "outcome", "policy"], **hypothesis()},
            "judged by the reward model of 'full'",
        ),
        ({"overrides": ["train.workers=5"], **hypothesis()}, "train.workers: a check sets it by '--workers'"),
        (
            {"overrides": ["evaluate.cooling=null"], **hypothesis(over="base_cooled")},
            "evaluate.cooling is null",
        ),
        ({"alpha": 1.5}, "alpha = 1.5"),
    ],
)
def test_a_bad_declaration_is_refused_with_the_key_and_what_is_allowed(tmp_path, changes, expected):
    changes = {
        "arms": ["outcome", "policy"],
        "overrides": ["+arm@arms.step_only=step_only"],
        "oracles": [],
    } | changes
    with pytest.raises(ConfigError) as caught:
        space_of(declared(tmp_path, **changes))
    assert expected in str(caught.value)


def contrast(low: float, mean: float, high: float, p: float | None) -> Contrast:
    return Contrast(Estimate(mean, low, high), p)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (contrast(0.01, 0.05, 0.09, 0.01), Verdict.HOLDS),
        (contrast(-0.09, -0.05, -0.01, 0.01), Verdict.REVERSED),
        (contrast(-0.02, 0.0, 0.02, 0.9), Verdict.TOO_SMALL),
        (contrast(-0.02, 0.02, 0.06, 0.3), Verdict.OPEN),
        (contrast(0.001, 0.02, 0.04, 0.2), Verdict.OPEN),  # clear alone, and not among many hypotheses
        (contrast(0.001, 0.01, 0.02, 0.04), Verdict.HOLDS),  # above 0, however little
        (None, Verdict.UNMEASURED),
    ],
)
def test_a_verdict_follows_from_the_corrected_test_and_the_interval(found, expected):
    assert decide(found, 0.05, 0.03) is expected


@pytest.fixture
def space(tmp_path):
    """A study of the project, with a workspace that is not in the project."""
    study = load_study(OWN)
    own = space_of(study)
    return (
        study,
        Workspace(tmp_path / "space", own.project, study, own.config, own.inputs, 1),
        tmp_path / "place",
    )


def test_a_study_that_is_not_registered_is_not_run(space):
    study, where, place = space
    with pytest.raises(ConfigError, match="register the study before it runs: `now`"):
        registered(study, where, place, "now")


def test_a_registered_study_is_found_again(space):
    study, where, place = space
    made = register(study, where, place)
    assert registered(study, where, place, "now") == made


def test_a_study_that_differs_from_its_registration_is_refused_with_the_keys(space, tmp_path):
    study, where, place = space
    register(study, where, place)
    other = declared(tmp_path, smallest=0.01)
    with pytest.raises(ConfigError, match=r"changed after it was registered \(smallest\)"):
        registered(other, where, place, "now")


def test_a_registration_that_was_edited_is_refused(space):
    study, where, place = space
    register(study, where, place)
    found = json.loads((place / FILE).read_text())
    found["declared"]["smallest"] = 0.5
    (place / FILE).write_text(json.dumps(found))
    with pytest.raises(ConfigError, match="its hash is not that of its content"):
        registered(study, where, place, "now")


def test_a_registration_that_is_younger_than_the_study_is_refused(space):
    study, where, place = space
    register(study, where, place)
    registered(study, where, place, "now")
    later = {**json.loads((place / FILE).read_text()), "at": "2099-01-01T00:00:00+00:00"}
    (place / FILE).write_text(json.dumps(later))
    with pytest.raises(ConfigError, match="after the study had begun"):
        registered(study, where, place, "now")
