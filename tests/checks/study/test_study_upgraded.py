"""Registrations and newer code: keys that it has gained at their default, or lost, change no study."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from study_cases import OWN, as_published, begun, declared, space_of

from rlanything.checks.study.declare import load_study
from rlanything.checks.study.registration import FILE, _content, _require_same, register, registered
from rlanything.checks.study.upgraded import changed
from rlanything.core.errors import ConfigError
from rlanything.core.ids import content_id


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
    with pytest.raises(ConfigError, match=r"\(keys that the code has gained or lost: train.staleness\)"):
        registered(study, where, place, "now")
    made = register(study, where, place)
    assert made.first.model_dump() == {key: first[key] for key in ("at", "commit", "hash")}
    assert registered(study, where, place, "now") == made


def without_level(registration: Path) -> None:
    """A registration by code whose declarations had neither `alpha` nor a hypothesis its own `smallest`."""
    found = json.loads(registration.read_text())
    del found["declared"]["alpha"]
    for hypothesis in found["declared"]["hypotheses"].values():
        del hypothesis["smallest"]
    found["hash"] = content_id({k: found[k] for k in ("declared", "configuration")})
    registration.write_text(json.dumps(found))


def test_a_study_that_has_begun_goes_on_when_the_code_has_gained_keys(space, tmp_path):
    study, where, place = begun(space)
    for folder in (place, where.root):
        without_level(folder / FILE)
        without(folder / FILE, "staleness")
    before = (place / FILE).read_bytes()
    assert registered(study, where, place, "now") == register(study, where, place)
    assert (place / FILE).read_bytes() == before
    with pytest.raises(ConfigError, match=r"the study has begun.*changed since: alpha\. Its results"):
        registered(declared(tmp_path, alpha=0.1), where, place, "now")


def test_a_published_declaration_may_lack_a_key_that_the_code_has_gained_since(space, tmp_path):
    study, where, place = as_published(space)
    without_level(place / FILE)
    older = json.loads((place / FILE).read_text())["declared"]
    (place / "study.json").write_text(json.dumps({"declared": older}))
    with pytest.raises(ConfigError, match=r"\(keys that the code has gained or lost: .* more\)"):
        registered(study, where, place, "now")
    with pytest.raises(ConfigError, match="this study was published, and differs now: alpha"):
        register(declared(tmp_path, alpha=0.1), where, place)
    made = register(study, where, place)
    assert made.first is not None
    assert registered(study, where, place, "now") == made


def test_a_change_is_not_hidden_among_the_keys_that_newer_code_has_gained(space, tmp_path):
    study, where, place = space
    register(study, where, place)
    for key in ("staleness", "offload", "nodes"):
        without(place / FILE, key)
    with pytest.raises(ConfigError, match=r"changed after it was registered \(smallest\)"):
        registered(declared(tmp_path, smallest=0.01), where, place, "now")


ORACLE = {"source": "oracle", "accuracy": 0.99, "systematic": 0.0}


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        (("arms", "policy", "judge"), ORACLE, r"arms\.policy\.judge"),
        (("evaluate", "cooling"), None, r"evaluate\.cooling"),
        (("model", "embedded"), None, r"model\.embedded"),
        (("env", "habits"), {}, r"env\.habits"),
        (("env", "task_types"), {"pick": 1}, r"env\.task_types\."),
        (("train", "staleness"), 1, r"train\.staleness"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
@pytest.mark.parametrize("older", [True, False])
def test_no_change_of_the_experiment_passes_for_newer_code(space, place, value, named, older):
    """A section that comes or goes, an entry of a mapping, and a key that the code has gained with another value."""
    study, where, folder = as_published(space)
    if older:
        without(folder / FILE, "staleness")
    changed = where.config.model_dump(mode="json", by_alias=True)
    section = changed
    for part in place[:-1]:
        section = section[part]
    section[place[-1]] = value
    with pytest.raises(ConfigError, match=rf"differs now: {named}"):
        _require_same(folder, {**_content(study, where), "configuration": changed})


@pytest.mark.parametrize(
    ("before", "now", "named"),
    [
        ({}, {"edit": "tokens"}, ["env.edit"]),
        ({"edit": "tokens"}, {}, ["env.edit"]),
        ({}, {"habits": {"look": 1.0}}, ["env.habits", "env.habits.look"]),
        ({}, {"edit": "scene"}, []),
        ({}, {"held_out": []}, []),
        ({"no_more": 1}, {}, []),
    ],
    ids=["gained", "default-again", "mapping", "gained-default", "default-of-a-tuple", "lost"],
)
def test_an_argument_of_the_environment_that_is_gained_counts_unless_it_is_the_default(before, now, named):
    configuration = space_of(load_study(OWN)).config.model_dump(mode="json", by_alias=True)
    bare = {k: v for k, v in configuration["env"].items() if k not in ("edit", "habits", "held_out")}
    old, new = ({**configuration, "env": {**bare, **one}} for one in (before, now))
    assert sorted(changed(old, new)) == named


@pytest.mark.parametrize("place", [("tasks", "panels", "in_domain"), ("arms", "policy")])
def test_a_whole_panel_or_arm_that_is_added_or_gone_counts(place):
    old = space_of(load_study(OWN)).config.model_dump(mode="json", by_alias=True)
    new = copy.deepcopy(old)
    *sections, name = place
    entries = new
    for section in sections:
        entries = entries[section]
    entries["another"] = entries[name]
    for found in (changed(old, new), changed(new, old)):
        assert found
        assert all(key.startswith(".".join([*sections, "another."])) for key in found)
