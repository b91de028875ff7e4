"""Provenance: what a run records of where it came from, and what it says when today is different."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from replay_cases import git
from stage_cases import small

from rlanything.cli import main
from rlanything.config import parse
from rlanything.core.errors import ConfigError
from rlanything.files import hashes
from rlanything.files.records import write_json
from rlanything.repro.origin import names, text
from rlanything.repro.origin import record as pages
from rlanything.runs import provenance
from rlanything.runs.layout import Layout
from rlanything.runs.machine import revision
from rlanything.stages import train

ARM = "full"
pytestmark = pytest.mark.integration


@pytest.fixture
def project(finished_project) -> Path:
    return finished_project


def ask(root: Path, *words: str) -> int:
    return main(["--root", str(root), "provenance", *words])


def test_a_run_records_what_it_was_made_from_and_what_came_out(project):
    record = provenance.read(project, ARM)
    assert parse(record["config"]) == small()
    assert record["inputs"]["models/policy/model.safetensors"] == hashes.sha256(
        project / "models/policy/model.safetensors"
    )
    assert "rlanything/loop/iteration.py" in record["code"]
    assert "envs/alfworld/family.py" in record["code"]
    assert "envs/coding/family.py" not in record["code"]
    assert record["seeds"]["0"]["sha256"] == hashes.tree_hash(project / "runs" / ARM / "seed-0")
    assert record["panels"] == json.loads((project / "data/tasks/manifest.json").read_text())
    (start,) = record["starts"]
    assert "starts" not in json.loads((project / "provenance" / "full.json").read_text())
    assert start["published"] == {"0": 0}
    assert start["packages"]["torch"]
    assert start["machine"]["cores"] >= 1
    assert start["programs"] == {}  # games in this process


def test_a_start_records_the_programs_of_the_environment(tmp_path):
    provenance.record_start(tmp_path, tmp_path, {0: 0}, {"xvfb": "2:21.1.7"})
    [start] = json.loads((tmp_path / provenance.STARTS).read_text())
    assert start["programs"] == {"xvfb": "2:21.1.7"}


def test_right_after_a_run_everything_matches(project, capsys):
    assert ask(project, ARM, "--exit-code") == 0
    printed = capsys.readouterr().out
    assert "DIFFERS" not in printed
    assert printed.count("same") == 8


def test_where_the_arm_was_measured_is_shown(project, capsys):
    assert ask(project, ARM) == 0
    assert "measured: " not in capsys.readouterr().out
    write_json(Layout(project).evaluation(ARM), {"arm": ARM})
    begun = provenance.start(project, {}, {}, ())
    provenance.write_measured(project, ARM, begun)
    assert ask(project, ARM) == 0
    assert f"measured: {begun['at']}" in capsys.readouterr().out


def test_a_page_has_every_part_and_where_the_arm_was_measured(project):
    write_json(Layout(project).evaluation(ARM), {"arm": ARM})
    begun = provenance.start(project, {}, {}, ())
    provenance.write_measured(project, ARM, begun)
    record = provenance.read(project, ARM)
    page = pages.assembled(record, {"code": ["a.py: gone"]}, project)
    assert page["measured"]["starts"] == [begun]
    assert [part for part, found in page["today"].items() if found] == ["code"]
    printed = text.text(page)
    assert (printed.count("DIFFERS"), printed.count("  same ")) == (1, 7)
    assert f"measured: {begun['at']}" in printed


def forged(project: Path, change: Callable[[dict[str, Any]], None]) -> list[str]:
    """What `provenance` says of the record after a change of it."""
    path = project / "provenance" / "full.json"
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))
    found = pages.page(ARM, small(), project)
    assert not pages.same(found)
    return list(found["today"]["record"])


def another_fingerprint(record: dict[str, Any]) -> None:
    record["fingerprint"] = "0" * 64


def another_run_seed(record: dict[str, Any]) -> None:
    record["seeds"]["0"]["run_seed"] = 7


def another_panel(record: dict[str, Any]) -> None:
    record["panels"]["in_domain"]["hash"] = "0" * 64


def without_its_seed(record: dict[str, Any]) -> None:
    record["seeds"] = {}


def another_division(record: dict[str, Any]) -> None:
    record["divisions"] = [{"first": {"0": 0}, "values": {"train.devices": 2}}]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (another_fingerprint, "fingerprint: 000000000000, and by the rest of the record "),
        (another_run_seed, "derived seed of 0: 7, and by the rest of the record "),
        (another_panel, "panels: "),
        (without_its_seed, 'seeds: [], and by the rest of the record ["0"]'),
        (another_division, "fingerprint: "),
    ],
)
def test_a_record_that_contradicts_itself_is_named(project, change, says):
    assert forged(project, change)[0].startswith(says)


@pytest.mark.parametrize(
    ("part", "path", "sentence"),
    [
        ("inputs", "data/tasks/train.jsonl", "data/tasks/train.jsonl: "),
        ("results", "runs/full/seed-0/metrics.jsonl", "0: "),
    ],
)
def test_a_changed_file_is_named(project, part, path, sentence):
    with (project / path).open("a") as file:
        file.write("\n")
    differing = provenance.differences(provenance.read(project, ARM), small(), project)
    assert [name for name, found in differing.items() if found] == [part]
    assert differing[part][0].startswith(sentence)


def test_a_changed_parameter_is_named_with_both_values(project):
    differing = provenance.differences(provenance.read(project, ARM), small("signals.lambda=2"), project)
    assert differing["configuration"] == ["signals.lambda: 1.0 -> 2.0"]


def test_another_package_version_is_named(project, monkeypatch):
    installed = {**provenance.packages(), "torch": "0.0.1", "extra-thing": "1"}
    monkeypatch.setattr(provenance, "packages", lambda: installed)
    differing = provenance.differences(provenance.read(project, ARM), small(), project)["packages"]
    assert [sentence.split(": ")[0] for sentence in differing] == ["extra-thing", "torch"]
    assert differing[1].endswith("-> 0.0.1")


def test_the_exit_code_says_that_something_differs(project, capsys):
    (project / "runs/full/seed-0/metrics.jsonl").unlink()
    assert ask(project, "runs/full/seed-0", "--exit-code") == 1
    assert ask(project, "full/seed-0") == 0
    assert "DIFFERS  the run's own files" in capsys.readouterr().out


def test_json_holds_the_record_and_what_differs(project, capsys):
    assert ask(project, ARM, "--json") == 0
    page = json.loads(capsys.readouterr().out)
    assert page["arm"] == ARM
    assert not any(page["today"].values())


def test_an_unknown_run_is_refused_with_the_nearest_name(project):
    with pytest.raises(ConfigError, match=r"no record of run 'ful': unknown; did you mean 'full'\?"):
        names.arm_of("ful", project)
    with pytest.raises(ConfigError, match=r"did you mean 'base'.* known: base, base_cooled, full"):
        names.of("bse", small(), project)


def test_a_name_means_a_run_of_this_project_alone(project):
    for name in (ARM, f"{ARM}/seed-0", f"runs/{ARM}", str(project / "runs" / ARM / "seed-0")):
        assert names.arm_of(name, project) == ARM
    for name in (f"../other/runs/{ARM}", f"{ARM}/seed-7", f"nothing/{ARM}"):
        with pytest.raises(ConfigError, match="no record of run"):
            names.arm_of(name, project)


def test_a_record_of_another_schema_is_refused(project):
    path = project / "provenance" / "full.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 99}))
    with pytest.raises(ConfigError, match="schema 99; this version reads 2 alone"):
        provenance.read(project, ARM)


@pytest.mark.long
def test_what_git_keeps_is_the_same_when_the_run_is_made_again(project, monkeypatch):
    kept = project / "provenance" / "full.json"
    starts = project / "provenance" / "starts" / "full.json"
    before, started = kept.read_bytes(), starts.read_bytes()
    monkeypatch.setattr(provenance, "packages", lambda: {"torch": "0.0.1"})
    monkeypatch.setattr(provenance, "_now", lambda: "another time")
    shutil.rmtree(project / "runs")
    train.train_arm(small(), project, ARM)
    assert kept.read_bytes() == before
    assert starts.read_bytes() != started


def test_without_the_starts_the_page_says_so_and_raises_no_alarm(project, capsys):
    shutil.rmtree(project / "provenance" / "starts")
    assert ask(project, ARM, "--exit-code") == 0
    printed = capsys.readouterr().out
    assert "starts: not on this machine" in printed
    assert (printed.count("unknown"), printed.count("  same ")) == (3, 5)


def test_starts_of_another_run_say_nothing(project):
    path = project / "provenance" / "full.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "fingerprint": "0" * 64}))
    assert provenance.read(project, ARM)["starts"] == []


@pytest.mark.parametrize("words", [["provenance", ARM], ["replay", f"{ARM}/seed-0"]])
def test_a_record_whose_configuration_no_version_of_today_reads_is_refused_with_its_file(
    project, capsys, words
):
    """The first versions declared the sizes of the panels beside each other."""
    kept = project / "provenance" / "full.json"
    old = json.loads(kept.read_text())
    old["config"]["tasks"]["in_domain"] = 100
    kept.write_text(json.dumps(old))
    assert main(["--root", str(project), *words]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "provenance/full.json: this version of the program cannot read the configuration" in said
    assert "or it is of an earlier version: read it with the code of its commit" in said
    assert "tasks: in_domain = 100" in said


def test_the_number_of_threads_in_the_environment_raises_no_alarm(project, monkeypatch):
    for value in ("1", "7"):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert not any(provenance.differences(provenance.read(project, ARM), small(), project).values())


def test_every_start_of_a_resumed_run_is_kept(tmp_path):
    provenance.record_start(tmp_path, tmp_path, {0: 0, 1: 0})
    provenance.record_start(tmp_path, tmp_path, {0: 7, 1: 5})
    starts = json.loads((tmp_path / provenance.STARTS).read_text())
    assert [start["published"] for start in starts] == [{"0": 0, "1": 0}, {"0": 7, "1": 5}]


def test_committing_the_results_raises_no_alarm_and_a_changed_file_does(project):
    git(project, "init")
    git(project, "add", "params.yaml")
    git(project, "commit", "-m", "start")
    (project / "params.yaml").write_text((project / "params.yaml").read_text() + "# changed\n")
    starts = project / "provenance" / "starts" / "full.json"
    data = json.loads(starts.read_text())
    data["starts"][-1]["git"] = revision(project)
    starts.write_text(json.dumps(data))
    assert ask(project, ARM, "--exit-code") == 0
    git(project, "add", "params.yaml", "provenance/full.json")
    git(project, "commit", "-m", "the settings and results of this run")
    assert ask(project, ARM, "--exit-code") == 0
    (project / "params.yaml").write_text((project / "params.yaml").read_text() + "# again\n")
    git(project, "commit", "--all", "-m", "another one")
    assert ask(project, ARM, "--exit-code") == 1


def test_committing_a_file_that_the_run_was_started_with_raises_no_alarm(project):
    git(project, "init")
    git(project, "add", "params.yaml")
    git(project, "commit", "-m", "start")
    (project / "mine é.yaml").write_text("seed: 7\n")
    starts = project / "provenance" / "starts" / "full.json"
    data = json.loads(starts.read_text())
    data["starts"][-1]["git"] = revision(project)
    starts.write_text(json.dumps(data))
    git(project, "add", "mine é.yaml")
    git(project, "commit", "-m", "the settings of this run")
    assert ask(project, ARM, "--exit-code") == 0


def test_what_is_not_known_of_the_code_is_said(project, capsys):
    starts = project / "provenance" / "starts" / "full.json"
    data = json.loads(starts.read_text())
    unknown = {"commit": "0" * 40, "clean": None, "diff": "", "diff_sha256": None, "untracked": []}
    data["starts"] = [{**data["starts"][-1], "git": unknown, "imported": "/other/clone"}]
    starts.write_text(json.dumps(data))
    ask(project, ARM)
    printed = capsys.readouterr().out
    assert "000000000000, changes not known" in printed
    assert "imported from /other/clone" in printed
    git(project, "init")
    git(project, "add", "params.yaml")
    git(project, "commit", "-m", "start")
    unknown["commit"] = revision(project)["commit"]
    starts.write_text(json.dumps({**data, "starts": [{**data["starts"][-1], "git": unknown}]}))
    git(project, "commit", "--allow-empty", "-m", "another one")
    assert ask(project, ARM, "--exit-code") == 1, "the files may be the same or not"


@pytest.mark.parametrize(("value", "says"), [("NaN", "x = nan"), ("-Infinity", "x = -inf")])
def test_a_value_that_no_record_holds_is_refused_with_its_key(project, value, says):
    path = project / "provenance" / "full.json"
    path.write_text(path.read_text().replace('"arm"', f'"x": {value}, "arm"', 1))
    with pytest.raises(ConfigError, match=f"full.json: no record holds such a value .*{says}"):
        provenance.read(project, ARM)


def test_words_of_a_record_cannot_move_the_cursor(project, capsys):
    path = project / "provenance" / "full.json"
    record = json.loads(path.read_text())
    panel = next(iter(record["panels"]))
    record["panels"]["\x1b[2J\u202e\x9b"] = record["panels"][panel]
    path.write_text(json.dumps(record))
    for words in ([], ["--json"]):
        ask(project, ARM, *words)
        printed = capsys.readouterr().out
        assert panel in printed
        assert printed.replace("\n", "").isprintable()
