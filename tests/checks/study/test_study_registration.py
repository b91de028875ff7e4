"""A study's registration: before it runs, and what may change afterwards."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from study_cases import HYPOTHESIS, OWN, ROOT, STUDIES, as_published, begun, declared, space_of

from rlanything.checks.study.declare import Study, load_study
from rlanything.checks.study.registration import FILE, _content, _require_same, pinned, register, registered
from rlanything.checks.workspace import Workspace
from rlanything.core.errors import ConfigError
from rlanything.files.records import write_json


def test_a_study_that_is_not_registered_is_not_run(space):
    study, where, place = space
    with pytest.raises(ConfigError, match="register the study before it runs: `now`"):
        registered(study, where, place, "now")


def test_a_registered_study_is_found_again(space):
    study, where, place = space
    made = register(study, where, place)
    assert registered(study, where, place, "now") == made


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


@pytest.mark.parametrize(
    "field", [{"at": "2020-01-01T00:00:00+00:00"}, {"commit": "0" * 40}, {"clean": True}, {"first": None}]
)
def test_when_and_where_it_was_registered_is_what_git_has(space, field):
    """None of it is in the hash."""
    study, where, place = in_git(space)
    before = json.loads((place / FILE).read_text())
    if field == {"first": None}:
        field = {"first": {"at": "2020-01-01T00:00:00+00:00", "commit": None, "hash": before["hash"]}}
    elif field == {"clean": True}:
        field = {"clean": not before["clean"]}
    write_json(place / FILE, {**before, **field})
    for again in (lambda: register(study, where, place), lambda: registered(study, where, place, "now")):
        with pytest.raises(
            ConfigError, match=f"no registration that git has; differs in {next(iter(field))}"
        ):
            again()
    write_json(place / FILE, before)
    assert registered(study, where, place, "now") == register(study, where, place)


def test_one_that_newer_code_made_and_an_older_one_of_git_are_known(space):
    study, where, place = in_git(space)
    first = json.loads((place / FILE).read_text())
    (place / FILE).unlink()
    again = register(study, where, place)
    assert again.first is not None
    assert registered(study, replace(where, root=where.root / "one"), place, "now") == again
    git(place.parent, "add", "place")
    git(place.parent, "commit", "--quiet", "-m", "registered again")
    write_json(place / FILE, first)
    assert registered(study, replace(where, root=where.root / "two"), place, "now").first is None


def test_a_registration_that_came_and_went_on_a_merged_branch_counts(space, tmp_path):
    _study, where, place = space
    root = place.parent
    (root / "other").write_text("1")
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "add", "other")
    git(root, "commit", "--quiet", "-m", "begun")
    git(root, "checkout", "--quiet", "-b", "branch")
    in_git(space)
    git(root, "rm", "-r", "--quiet", "place")
    git(root, "commit", "--quiet", "-m", "gone")
    git(root, "checkout", "--quiet", "main")
    git(root, "merge", "--quiet", "--no-ff", "-m", "merged", "branch")
    with pytest.raises(ConfigError, match=r"was committed, and differs now: smallest"):
        register(declared(tmp_path, smallest=0.01), where, place)


def test_published_results_without_their_registration_are_not_registered_again(space):
    study, where, place = as_published(space)
    (place / FILE).unlink()
    with pytest.raises(ConfigError, match="the study was published; take it from git"):
        register(study, where, place)


def test_a_workspace_that_has_begun_does_not_pass_what_git_has_under_its_name(space, tmp_path):
    """Its own study was registered, begun and its registration deleted before another one was committed."""
    _study, where, place = in_git(space)
    other = declared(tmp_path, smallest=0.01)
    elsewhere = replace(where, root=tmp_path / "other", config=space_of(other).config)
    made = register(other, elsewhere, tmp_path / "unused")
    write_json(elsewhere.root / FILE, made.model_dump(mode="json"))
    (place / FILE).unlink()
    with pytest.raises(ConfigError, match=r"was committed, and differs now: smallest"):
        registered(other, elsewhere, place, "now")


@pytest.mark.parametrize("name", STUDIES)
def test_the_registered_studies_are_still_those_that_are_declared(name):
    """Otherwise their results could not be recorded again, with `--registered` where the default is another one."""
    study = load_study(OWN.with_name(name))
    place = ROOT / "checks" / OWN.with_name(name).stem
    space = space_of(study, pinned(study, ROOT, place))
    assert _require_same(place, _content(study, space)) is not None
