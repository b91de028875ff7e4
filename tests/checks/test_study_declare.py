"""A study's declaration, its registration, and what follows from a difference."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from rlanything.checks.study.declare import Study, load_study
from rlanything.checks.study.registration import FILE, _content, _require_same, register, registered
from rlanything.checks.study.verdict import Verdict, both_tests
from rlanything.checks.workspace import Workspace
from rlanything.config import parse
from rlanything.core.errors import ConfigError
from rlanything.core.ids import content_id
from rlanything.planning import compose
from rlanything.report.results.statistics import Panel

ROOT = Path(__file__).parents[2]
OWN = ROOT / "experiments" / "check" / "study.yaml"
STUDIES = ("study.yaml", "table1.yaml", "long.yaml", "transfer.yaml", "weak_reward.yaml")


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


HYPOTHESIS = {"claim": "It is.", "arm": "policy", "over": "outcome", "metric": "in_domain"}


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


def panel(*values: tuple[float, ...]) -> Panel:
    """Shares of solved games, one tuple a seed."""
    hits = np.array([values], dtype=np.float64)
    tasks = tuple(f"t{k}" for k in range(hits.shape[2]))
    return Panel(tuple(range(len(values))), tasks, hits, np.ones_like(hits))


def around(mean: float, noise: float) -> Panel:
    """8 seeds and 40 games whose shares scatter around `mean`."""
    cells = mean + noise * np.random.default_rng(0).standard_normal((8, 40))
    return panel(*map(tuple, cells - cells.mean() + mean))


@pytest.mark.parametrize(
    ("mean", "noise", "expected"),
    [
        (0.10, 0.1, Verdict.HOLDS),
        (-0.10, 0.1, Verdict.REVERSED),
        (0.0, 0.01, Verdict.TOO_SMALL),
        (0.015, 0.01, Verdict.SMALL),
        (0.02, 0.9, Verdict.OPEN),
        (-0.02, 0.9, Verdict.OPEN),
    ],
)
def test_a_verdict_follows_from_both_tests(mean, noise, expected):
    found = both_tests({"one": (around(0.5 + mean, noise), around(0.5, 0.0))}, {"one": 0.03})["one"]
    assert found.contrast.difference.mean == pytest.approx(mean)
    assert found.verdict(0.05) is expected


def test_more_of_the_same_data_never_turns_a_refuted_hypothesis_into_one_that_matters():
    for noise in (0.001, 0.003, 0.01, 0.03, 0.1):
        found = both_tests({"one": (around(0.51, noise), around(0.5, 0.0))}, {"one": 0.03})["one"]
        assert found.verdict(0.05) in (Verdict.SMALL, Verdict.TOO_SMALL, Verdict.OPEN)


def test_equal_seeds_and_games_prove_nothing():
    same = both_tests({"one": (panel((1, 1), (1, 1)), panel((0, 0), (0, 0)))}, {"one": 0.03})["one"]
    assert same.contrast.p is None
    assert same.verdict(0.05) is Verdict.OPEN


def test_what_could_not_be_measured_counts_in_the_correction():
    pair = (around(0.6, 0.6), around(0.5, 0.0))
    alone = both_tests({"one": pair}, {"one": 0.03})["one"]
    three = both_tests(
        {"one": pair, "two": None, "three": None}, dict.fromkeys(("one", "two", "three"), 0.03)
    )
    assert three["one"].contrast.p == pytest.approx(min(1.0, 3 * alone.contrast.p))
    assert three["two"].verdict(0.05) is Verdict.UNMEASURED


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


def begun(space) -> tuple[Study, Workspace, Path]:
    """The study, registered and begun."""
    study, where, place = space
    register(study, where, place)
    registered(study, where, place, "now")
    return space


@pytest.mark.parametrize(
    "changes",
    [{"smallest": 0.01}, {"alpha": 0.1}, {"hypotheses": {"one": HYPOTHESIS}}],
    ids=lambda changes: next(iter(changes)),
)
def test_what_is_asked_of_the_results_can_be_changed_until_the_study_has_begun(space, tmp_path, changes):
    study, where, place = space
    first = register(study, where, place)
    other = declared(tmp_path, **changes)
    assert space_of(other).root == space_of(study).root
    with pytest.raises(ConfigError, match="changed after it was registered"):
        registered(other, where, place, "now")
    assert register(other, where, place).hash != first.hash
    registered(other, where, place, "now")
    for again in (lambda: register(study, where, place), lambda: registered(study, where, place, "now")):
        with pytest.raises(ConfigError, match=r"the study has begun.*Its results may have been seen"):
            again()


def test_a_study_that_trains_something_else_has_another_workspace(tmp_path):
    assert space_of(declared(tmp_path, seeds=9)).root != space_of(load_study(OWN)).root


def test_a_registration_that_was_edited_is_refused(space):
    study, where, place = space
    register(study, where, place)
    found = json.loads((place / FILE).read_text())
    found["declared"]["smallest"] = 0.5
    (place / FILE).write_text(json.dumps(found))
    with pytest.raises(ConfigError, match="its hash is not that of its content"):
        registered(study, where, place, "now")


def test_an_equal_registration_is_kept(space):
    study, where, place = begun(space)
    before = (place / FILE).read_bytes()
    register(study, where, place)
    assert (place / FILE).read_bytes() == before


def test_a_registration_that_is_younger_than_the_study_is_refused(space):
    study, where, place = begun(space)
    later = {**json.loads((place / FILE).read_text()), "at": "2099-01-01T00:00:00+00:00"}
    (place / FILE).write_text(json.dumps(later))
    with pytest.raises(ConfigError, match="after the study had begun"):
        registered(study, where, place, "now")


def test_a_start_that_was_killed_while_it_published_goes_on(space):
    study, where, place = begun(space)
    made = registered(study, where, place, "now")
    (place / FILE).unlink()
    assert registered(study, where, place, "now") == made


def test_the_studies_have_data_of_their_own():
    seeds = [space_of(load_study(OWN.with_name(name))).config.seed for name in STUDIES]
    recorded = parse(compose.compose([], ROOT)).seed
    assert len({recorded, *seeds}) == 1 + len(STUDIES)


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "-C", str(root), *who, *words], check=True, capture_output=True)


def in_git(space) -> tuple[Study, Workspace, Path]:
    """The study, registered and committed."""
    study, where, place = space
    register(study, where, place)
    git(place.parent, "init", "--quiet")
    git(place.parent, "add", "place")
    git(place.parent, "commit", "--quiet", "-m", "registered")
    return space


def as_published(space) -> tuple[Study, Workspace, Path]:
    """The study with results that lie there, and a workspace that other code has given another name."""
    study, where, place = space
    register(study, where, place)
    (place / "study.json").write_text(json.dumps({"declared": study.model_dump(mode="json")}))
    return space


def one_more() -> dict[str, object]:
    return {"hypotheses": {**yaml.safe_load(OWN.read_text())["hypotheses"], "one_more": HYPOTHESIS}}


@pytest.mark.parametrize("before", [in_git, as_published])
@pytest.mark.parametrize(
    "changes", [{"smallest": 0.01}, one_more(), {"seeds": 9}], ids=["smallest", "hypotheses", "seeds"]
)
def test_a_study_that_was_published_or_committed_is_not_registered_for_something_else(
    space, tmp_path, before, changes
):
    _study, where, place = before(space)
    text, other = (place / FILE).read_bytes(), declared(tmp_path, **changes)
    changed = replace(where, config=space_of(other).config)
    for again in (lambda: register(other, changed, place), lambda: registered(other, changed, place, "now")):
        with pytest.raises(ConfigError, match=r"differs now: .*another name, and a `seed` of its own"):
            again()
    assert (place / FILE).read_bytes() == text


def test_a_committed_registration_counts_when_its_file_was_deleted(space, tmp_path):
    _study, where, place = in_git(space)
    git(place.parent, "rm", "-r", "--quiet", "place")
    git(place.parent, "commit", "--quiet", "-m", "gone")
    with pytest.raises(ConfigError, match=r"was committed, and differs now: smallest"):
        register(declared(tmp_path, smallest=0.01), where, place)


def test_published_results_without_their_registration_are_not_registered_again(space):
    study, where, place = as_published(space)
    (place / FILE).unlink()
    with pytest.raises(ConfigError, match="the study was published; take it from git"):
        register(study, where, place)


def without(registration: Path, key: str) -> dict[str, object]:
    """A registration by code that had no such key of `train`; its hash is that of its content."""
    found = json.loads(registration.read_text())
    del found["configuration"]["train"][key]
    found["hash"] = content_id({k: found[k] for k in ("declared", "configuration")})
    registration.write_text(json.dumps(found))
    return found


def test_a_study_that_newer_code_registers_again_names_its_first_registration(space):
    study, where, place = as_published(space)
    first = without(place / FILE, "staleness")
    with pytest.raises(ConfigError, match=r"changed after it was registered \(train.staleness\)"):
        registered(study, where, place, "now")
    made = register(study, where, place)
    assert made.first.model_dump() == {key: first[key] for key in ("at", "commit", "hash")}
    assert registered(study, where, place, "now") == made


@pytest.mark.parametrize("name", STUDIES)
def test_the_published_studies_are_still_those_that_are_declared(name):
    """Otherwise their results could not be recorded again."""
    study = load_study(OWN.with_name(name))
    place = ROOT / "checks" / OWN.with_name(name).stem
    assert _require_same(place, _content(study, space_of(study))) is not None
