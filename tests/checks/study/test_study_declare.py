"""A study's declaration: what it must say, and what it gives."""

from __future__ import annotations

import pytest
import yaml
from study_cases import HYPOTHESIS, OWN, ROOT, STUDIES, declared, space_of

from rlanything.checks.study.declare import Study, load_study
from rlanything.config import parse
from rlanything.core.errors import ConfigError
from rlanything.planning import compose


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
    return {"hypotheses": {"one": {**HYPOTHESIS, **changes}}}


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
        (hypothesis(smallest=3), "hypotheses.one: smallest = 3.0: must be below 1"),
        (hypothesis(metric="accepted_tasks"), "hypotheses.one.smallest: missing; accepted_tasks is a count"),
        (hypothesis(claim="a | b"), "hypotheses.one.claim"),
        (hypothesis(over="base_cooled", metric="rm_process"), "'base_cooled' has no rm_process"),
        (
            {**hypothesis(arm="oracle_100", metric="rm_process"), "oracles": [{"accuracy": 1.0}]},
            "has no rm_process",
        ),
        (
            {"oracles": [{"accuracy": 1.0}, {"accuracy": 1.0, "systematic": 0.0}], **hypothesis()},
            "oracles: 'oracle_100' is there twice",
        ),
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


def test_a_study_that_trains_something_else_has_another_workspace(tmp_path):
    assert space_of(declared(tmp_path, seeds=9)).root != space_of(load_study(OWN)).root


@pytest.mark.slow
def test_the_studies_have_data_of_their_own():
    """Only `pairwise_votes` shares them: it asks the reward models of `pairwise` once more."""
    seeds = {name: space_of(load_study(OWN.with_name(name))).config.seed for name in STUDIES}
    assert seeds.pop("pairwise_votes.yaml") == seeds["pairwise.yaml"]
    recorded = parse(compose.compose([], ROOT)).seed
    assert len({recorded, *seeds.values()}) == 1 + len(seeds)
