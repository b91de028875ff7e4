"""The numbers that studies and ladders published follow from the results beside them, and were registered before."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from rlanything.checks.ladder import results as ladder_results
from rlanything.checks.ladder.declare import load_ladder
from rlanything.checks.ladder.document import to_json as ladder_json
from rlanything.checks.study import results as study_results
from rlanything.checks.study.document import to_json as study_json
from rlanything.checks.study.published import read_published
from rlanything.config import parse
from rlanything.files.yaml_file import read_mapping

ROOT = Path(__file__).parents[3]
CHECKS = ROOT / "checks"
STUDIES = sorted(path.parent.name for path in CHECKS.glob("*/study.json"))
REGISTERED_AGAIN = ("coding_table1", "long")
"""Studies that were registered twice, because code had gained keys."""


def same(stored: Any, computed: Any) -> bool:
    """Whether two pieces of JSON agree. The last digits of a number are another processor's."""
    if isinstance(stored, dict) and isinstance(computed, dict):
        return stored.keys() == computed.keys() and all(same(stored[key], computed[key]) for key in stored)
    if isinstance(stored, list) and isinstance(computed, list):
        return len(stored) == len(computed) and all(map(same, stored, computed))
    if isinstance(stored, float) and isinstance(computed, float):
        return stored == pytest.approx(computed, rel=1e-6, abs=1e-9)
    return bool(stored == computed)


@pytest.mark.parametrize("name", STUDIES)
def test_every_test_of_a_study_is_computed_again_from_its_evaluations(name):
    """Differences, intervals, p with the correction over all hypotheses, verdicts, and the means of the arms."""
    folder = CHECKS / name
    published, config = read_published(folder), parse(read_mapping(folder / "params.yaml"))
    again = study_json(study_results.read(folder, published.study, config, published.registration))
    stored = json.loads((folder / "study.json").read_text())
    assert same(stored["hypotheses"], json.loads(json.dumps(again["hypotheses"])))
    for arm, values in stored["arms"].items():
        assert same(values, {key: json.loads(json.dumps(again["arms"][arm][key])) for key in values}), arm


@pytest.mark.parametrize("name", ["fitness", "ladder", "ladder_former", "written_tests"])
def test_every_gain_of_a_ladder_is_computed_again_from_its_evaluations(name):
    folder = CHECKS / name
    stored = json.loads((folder / "ladder.json").read_text())
    config = parse(read_mapping(folder / "params.yaml"))
    again = ladder_json(ladder_results.read(folder, load_ladder(folder / "ladder.yaml"), config))
    for key in ("panels", "games", "fit", "verdict", "criteria", "power", "temperatures"):
        assert same(stored[key], json.loads(json.dumps(again[key]))), key


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def commits(path: str) -> list[tuple[str, datetime]]:
    """The commits that changed a file, the oldest first."""
    lines = git("log", "--reverse", "--format=%H %cI", "--", path).splitlines()
    return [(line.split()[0], datetime.fromisoformat(line.split()[1])) for line in lines]


def known(name: str) -> tuple[list[tuple[str, datetime]], list[tuple[str, datetime]]]:
    """The commits of a study's registration and of its results. Skips where this copy lacks that history."""
    registration = json.loads((CHECKS / name / "registration.json").read_text())
    if not git("cat-file", "-t", registration["commit"]):
        pytest.skip("this copy of the project has no history of its registrations")
    return commits(f"checks/{name}/registration.json"), commits(f"checks/{name}/study.json")


@pytest.mark.parametrize("name", STUDIES)
def test_a_registration_was_committed_before_the_results_and_not_changed_since(name):
    registered, published = known(name)
    place = f"checks/{name}/registration.json"
    texts = [(commit, text) for commit, _ in registered if (text := git("show", f"{commit}:{place}"))]
    (last, registration), before = texts[-1], published[0][0]
    assert last != before
    assert git("merge-base", last, before).strip() == last
    now = json.loads((ROOT / place).read_text())
    assert json.loads(registration) == now
    first = json.loads(texts[0][1])
    assert first["declared"] == now["declared"]
    assert (first["hash"] != now["hash"]) == (name in REGISTERED_AGAIN)


def ages() -> Iterator[tuple[str, int]]:
    """Study -> by how many minutes docs/study_records.md says that its registration is older than its results."""
    page = " ".join((ROOT / "docs" / "study_records.md").read_text().split())
    for section in page.split("## Result"):
        opening, *records = re.split(r"`checks/(\w+)/` holds the record", section)
        both = re.search(r"both registrations are (\d+) minutes older than the results", opening)
        for name, text in zip(records[::2], records[1::2], strict=True):
            if found := both or re.search(
                r"registration is (\d+) minutes older than (?:the|its) results", text
            ):
                yield name, int(found[1])


def test_by_how_much_a_registration_is_older_than_its_results():
    said = dict(ages())
    assert len(said) >= 11
    for name, minutes in said.items():
        registered, published = known(name)
        assert round((published[0][1] - registered[-1][1]).total_seconds() / 60) == minutes, name
