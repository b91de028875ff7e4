"""Provenance of the base models, of which no run keeps a record."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from stage_cases import small

from rlanything.cli import main
from rlanything.files import hashes
from rlanything.files.records import write_json
from rlanything.repro.origin import base, text
from rlanything.runs import provenance
from rlanything.runs.layout import Layout

ARM = "full"
pytestmark = pytest.mark.integration


@pytest.fixture
def project(finished_project) -> Path:
    return finished_project


def ask(root: Path, *words: str) -> int:
    return main(["--root", str(root), "provenance", *words])


def test_of_the_base_models_their_files_are_shown_and_that_the_runs_began_with_them(project, capsys):
    assert ask(project, "base", "--exit-code") == 0
    printed = capsys.readouterr().out
    assert "trained by `rlanything bootstrap`" in printed
    assert "  policy: models/policy, 6 files, " in printed
    assert f"same     the base models that {ARM} began with" in printed
    assert ask(project, "base", "--json") == 0
    page = json.loads(capsys.readouterr().out)
    weights = hashes.sha256(project / "models/policy/model.safetensors")
    assert page["models"]["policy"]["files"]["model.safetensors"] == weights
    assert page["today"] == {ARM: []}


def test_a_base_model_that_a_run_did_not_begin_with_is_named(project, capsys):
    (project / "models/bootstrap.json").write_text("{}")  # what was measured of the models is none of them
    (project / "data/tasks/train.jsonl").write_text("")
    assert ask(project, "base", "--exit-code") == 0
    (project / "models/policy/config.json").write_text("{}")
    shutil.rmtree(project / "models/adapter")
    capsys.readouterr()
    assert ask(project, "base", "--exit-code") == 1
    printed = capsys.readouterr().out
    assert f"DIFFERS  the base models that {ARM} began with" in printed
    assert "models/policy/config.json: " in printed
    assert "models/adapter/model.safetensors: gone" in printed
    assert "  adapter: models/adapter, not on this machine" in printed


def test_a_checkpoint_elsewhere_is_compared_with_what_the_runs_began_with(project, capsys):
    shutil.copytree(project / "models/policy", project / "mine")
    path = project / "provenance" / "full.json"
    record = json.loads(path.read_text())
    record["inputs"]["mine/config.json"] = "0" * 64
    path.write_text(json.dumps(record))
    config = small("model.policy.path=mine", "model.embedded=null")
    page = base.base_page("base", config, project)
    assert page["models"]["policy"]["path"] == "mine"
    assert [sentence.split(":")[0] for sentence in page["today"][ARM]] == ["mine/config.json"]
    assert "checkpoints that the configuration names" in text.text(page)


def test_without_the_models_it_is_unknown_whether_the_runs_began_with_them(project, capsys):
    shutil.rmtree(project / "models")
    assert ask(project, "base", "--exit-code") == 0
    printed = capsys.readouterr().out
    assert "  policy: models/policy, not on this machine" in printed
    assert f"unknown  the base models that {ARM} began with" in printed


def test_of_the_base_models_a_record_that_cannot_be_read_is_named_beside_the_others(project, capsys):
    shutil.copy(project / "provenance" / f"{ARM}.json", project / "provenance" / "old.json")
    assert ask(project, "base", "--exit-code") == 1
    printed = capsys.readouterr().out
    assert f"same     the base models that {ARM} began with" in printed
    assert "unknown  the base models that old began with" in printed
    assert "old.json: it is the record of arm 'full'" in printed


def test_where_the_base_models_were_measured_is_shown(project, capsys):
    write_json(Layout(project).evaluation("base_cooled"), {"arm": "base_cooled"})
    begun = provenance.start(project, {}, {}, ())
    provenance.write_measured(project, "base_cooled", begun)
    for name, times in (("base", 0), ("base_cooled", 1)):
        assert ask(project, name) == 0
        assert capsys.readouterr().out.count("measured: ") == times
