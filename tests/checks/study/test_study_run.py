"""A tiny study with real parts: registered, run, read, drawn and published."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from check_cases import QUICK, project
from stage_cases import contents

from rlanything.checks.study.verdict import both_tests
from rlanything.cli import main
from rlanything.loop.iteration import Loop
from rlanything.report.results import statistics
from rlanything.report.results.evaluations import read_evaluation
from rlanything.stages import evaluate

pytestmark = [pytest.mark.long, pytest.mark.integration]

DECLARED = {
    "overrides": QUICK,
    "seeds": 2,
    "arms": ["outcome"],
    "oracles": [{"accuracy": 1.0}],
    "expert": False,
    "hypotheses": {
        "votes": {"claim": "Votes help.", "arm": "oracle_100", "over": "outcome", "metric": "in_domain"},
        "cooled": {"claim": "It learns.", "arm": "outcome", "over": "base_cooled", "metric": "in_domain"},
    },
}


def words(root: Path, *more: str) -> list[str]:
    return ["--root", str(root), "check", "study", str(root / "tiny.yaml"), *more]


@pytest.fixture(scope="module")
def finished(tiny_project, tmp_path_factory) -> Path:
    root = project(tiny_project, tmp_path_factory.mktemp("study") / "project", DECLARED)
    assert main(words(root, "--register")) == 0
    assert main(words(root, "--workers", "1")) == 0
    return root


@pytest.fixture(scope="module")
def published(finished) -> Path:
    return finished / "checks" / "tiny"


def test_nothing_is_trained_before_it_is_registered(tiny_project, tmp_path, capsys):
    root = project(tiny_project, tmp_path / "project", DECLARED)
    assert main(words(root)) == 2
    assert "register the study before it runs" in capsys.readouterr().err
    assert not (root / "checks").exists()


def test_it_publishes_every_hypothesis_with_its_difference(published):
    found = json.loads((published / "study.json").read_text())
    rows = found["hypotheses"]
    mine, zero = (
        read_evaluation(published / "evaluation" / f"{a}.json", a)["in_domain"]
        for a in ("oracle_100", "outcome")
    )
    assert rows["votes"]["difference"]["mean"] == pytest.approx(
        statistics.contrast(mine, zero).difference.mean
    )
    page = (published / "report.md").read_text()
    for row in rows.values():
        assert row["claim"] in page
    assert "Of 2 hypotheses: " in page


def test_the_tests_are_those_of_the_published_results(published):
    found = json.loads((published / "study.json").read_text())["hypotheses"]
    panels = {
        arm: read_evaluation(published / "evaluation" / f"{arm}.json", arm)["in_domain"]
        for arm in ("oracle_100", "outcome", "base_cooled")
    }
    pairs = {"votes": ("oracle_100", "outcome"), "cooled": ("outcome", "base_cooled")}
    expected = both_tests(
        {n: (panels[a], panels[b]) for n, (a, b) in pairs.items()}, dict.fromkeys(pairs, 0.03)
    )
    for name, test in expected.items():
        assert found[name]["difference"]["p"] == test.contrast.p
        assert found[name]["difference"]["p_smallest"] == test.p_smallest
        assert found[name]["verdict"] == test.verdict(0.05)


def test_the_registration_stays_beside_the_results(published):
    registration = json.loads((published / "registration.json").read_text())
    found = json.loads((published / "study.json").read_text())
    assert found["registration"]["hash"] == registration["hash"]
    assert registration["hash"][:16] in (published / "report.md").read_text()


def test_the_figure_is_drawn_in_both_formats(published):
    assert (published / "figures" / "study.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (published / "figures" / "study.svg").read_bytes()


def test_a_second_start_does_nothing_again_and_gives_the_same_bytes(finished, published, monkeypatch):
    before = contents(published)
    monkeypatch.setattr(Loop, "collect", lambda *_: pytest.fail("trained again"))
    monkeypatch.setattr(evaluate, "evaluate_seed", lambda *_: pytest.fail("measured again"))
    assert main(words(finished, "--workers", "1")) == 0
    assert contents(published) == before


def test_a_dry_run_names_the_hypotheses_and_runs_nothing(tiny_project, tmp_path, capsys):
    root = project(tiny_project, tmp_path / "project", DECLARED)
    assert main(words(root, "--dry-run")) == 0
    said = capsys.readouterr().out
    assert "train oracle_100" in said
    assert "hypothesis votes: oracle_100 above outcome in in_domain: Votes help." in said
    assert not (root / "checks").exists()


def test_the_page_is_drawn_again_without_its_workspace(finished, published, tmp_path):
    """The same bytes, from nothing but the published folder."""
    shutil.copytree(published, tmp_path / "checks" / "tiny")
    again = ["--root", str(tmp_path), "check", "study", "tiny.yaml", "--page"]
    assert main(again) == 0
    assert contents(tmp_path / "checks" / "tiny") == contents(published)
    assert (published / "figures" / "steps.svg").is_file()
