"""A study runs under the configuration that was registered, also where experiments/ says something else today."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import QuotedString
from hypothesis import given
from hypothesis import strategies as st
from study_cases import OWN, ROOT

from rlanything.checks.study.command import print_study, register_study
from rlanything.checks.study.declare import load_study
from rlanything.checks.study.pins import pins
from rlanything.checks.study.registration import FILE, pinned, read_registration, registered
from rlanything.checks.workspace import Workspace
from rlanything.cli import main
from rlanything.config import parse
from rlanything.core.errors import ConfigError
from rlanything.planning import compose
from rlanything.sweep.declare.override import PLAIN, WORDS, written

NAME = OWN.stem


@pytest.fixture
def root(tmp_path) -> Path:
    """A project with files of experiments/ of its own, in which the study is registered."""
    shutil.copytree(ROOT / "experiments", tmp_path / "experiments")
    for name in ("envs", "rlanything", "dvc.yaml", "params.yaml"):
        (tmp_path / name).symlink_to(ROOT / name)
    register_study(tmp_path / "experiments" / "check" / OWN.name, tmp_path, tmp_path / "params.yaml")
    return tmp_path


def change(root: Path, file: str, **values: object) -> None:
    """Give a file of experiments/ other values, nested keys joined by dots."""
    path = root / "experiments" / file
    content = yaml.safe_load(path.read_text())
    for key, value in values.items():
        *place, last = key.split(".")
        section = content
        for part in place:
            section = section.setdefault(part, {})
        section[last] = value
    head = "# @package _global_\n" if path.read_text().startswith("# @package _global_") else ""
    path.write_text(head + yaml.safe_dump(content))


CHANGES = {
    "a number and a section": (
        "setting/alfworld-default.yaml",
        {"env.habits.look": 0.9, "signals.lambda": 1.0, "judge.temperature": 0.7},
    ),
    "settings of the machine, and an argument": (
        "scale/default.yaml",
        {"rollout.timeout_s": 90, "executor.workers": 3, "env.timeout": 90, "env.receptacles": [5, 8]},
    ),
    "null and a list": (
        "scale/default.yaml",
        {"evaluate.cooling.temperatures": [1.0, 0.5], "evaluate.solver.path": "models/policy"},
    ),
    "null in the place of a section": (
        "scale/default.yaml",
        {"evaluate.cooling": None, "model.policy.revision": "it's"},
    ),
    "a new panel": (
        "scale/default.yaml",
        {"tasks.panels.more": {"measures": ["policy"], "split": "in_domain", "tasks": 4}},
    ),
}


@pytest.mark.parametrize(("file", "values"), CHANGES.values(), ids=CHANGES)
def test_the_registered_configuration_is_made_of_that_of_today(root, file, values):
    study, place = load_study(OWN), root / "checks" / NAME
    before = read_registration(place / FILE).configuration
    overrides = study.hydra_overrides(1)
    assert pinned(study, root, place) == ()
    change(root, file, **values)
    now = parse(compose.compose(overrides, root)).model_dump(mode="json", by_alias=True)
    again = parse(compose.compose([*overrides, *pinned(study, root, place)], root))
    found = again.model_dump(mode="json", by_alias=True)
    for data in (now, found):
        data["train"].pop("workers")
    assert now != before
    assert found == before


TEXTS = st.text(st.characters(exclude_categories=("C", "Zl", "Zp")))
KEYS = st.from_regex(PLAIN, fullmatch=True).filter(lambda key: key.lower() not in WORDS)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@given(VALUES)
def test_hydra_reads_a_value_as_it_was(value):
    (override,) = OverridesParser.create().parse_overrides([f"++a.b={written(value)}"])
    assert _plain(override.value()) == value


def _plain(value: object) -> object:
    """A value with strings in the place of Hydra's quoted ones."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.text if isinstance(value, QuotedString) else value


def test_a_key_that_no_override_can_name_is_refused():
    now = json.loads((ROOT / "checks" / "table1" / "registration.json").read_text())["configuration"]
    before = {**now, "arms": {**now["arms"], "100": now["arms"]["full"]}}
    with pytest.raises(ConfigError, match=r"arms\.100: no Hydra override can name this key"):
        pins(before, now)


def test_its_workspace_has_the_registered_configuration_and_says_so_where_it_is_not_asked_for(root):
    study, place, params = load_study(OWN), root / "checks" / NAME, root / "params.yaml"
    first = Workspace.of(NAME, study, root, params, 1)
    for file, values in CHANGES.values():
        if "evaluate.cooling" not in values:
            change(root, file, **values)
    today = Workspace.of(NAME, study, root, params, 1)
    with pytest.raises(ConfigError, match="changed after it was registered"):
        registered(study, today, place, "now")
    again = Workspace.of(NAME, study, root, params, 1, pinned(study, root, place))
    assert again.config == first.config
    assert again.root == first.root != today.root
    assert again.is_current()
    again.prepare()
    assert parse(yaml.safe_load((again.root / "params.yaml").read_text())) == first.config
    assert registered(study, again, place, "now").hash == read_registration(place / FILE).hash


def test_the_command_refuses_it_for_a_page_and_without_a_registration(root, capsys):
    words = [
        "--root",
        str(root),
        "check",
        "study",
        str(root / "experiments" / "check" / OWN.name),
        "--registered",
    ]
    assert main([*words, "--page"]) == 2
    assert "--registered: not with --page" in capsys.readouterr().err
    assert main([*words, "--dry-run"]) == 0
    (root / "checks" / NAME / FILE).unlink()
    assert main([*words, "--dry-run"]) == 2
    assert "take it from git, or register the study first" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="no such file"):
        print_study(root / "experiments" / "check" / OWN.name, root, root / "params.yaml", 1, pinned=True)


PAGE = (ROOT / "docs" / "checks.md").read_text().partition("\n## The study\n")[2]


def test_the_page_names_the_studies_that_need_it():
    named = re.search(r"need `--registered`, because .+?\): ((?:`\w+`(?:, )?)+)\.", PAGE)[1]
    registrations = [path.parent for path in (ROOT / "checks").glob(f"*/{FILE}")]
    declared = {place: load_study(OWN.with_name(f"{place.name}.yaml")) for place in registrations}
    assert set(re.findall(r"\w+", named)) == {
        place.name for place, study in declared.items() if pinned(study, ROOT, place)
    }


def test_the_first_lines_of_the_page_register_a_study(root):
    block = re.search(r"```bash\n(.*?)```", PAGE, re.DOTALL)[1]
    commands = [shlex.split(line, comments=True) for line in block.splitlines()]
    made = root / "experiments" / "check" / "mine.yaml"
    for words in commands:
        if words[0] in ("cp", "sed"):
            subprocess.run(words, cwd=root, check=True)
        elif words[0] == "rlanything" and words[-1] in ("--dry-run", "--register"):
            place = [str(root / word) if word.endswith(".yaml") else word for word in words[1:]]
            assert main(["--root", str(root), *place]) == 0
    study = load_study(made)
    assert "seed=100" in study.overrides
    assert read_registration(root / "checks" / "mine" / FILE).declared == study.model_dump(mode="json")
