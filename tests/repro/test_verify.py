"""Verifying a project: its pipeline runs again from nothing, through the real DVC, and every output is compared."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from stage_cases import ROOT

from rlanything.cli import main
from rlanything.core.errors import ConfigError
from rlanything.repro import verify, workspace
from rlanything.repro.pipeline import read_lock
from rlanything.runs.machine import cpu_model

pytestmark = pytest.mark.integration

PIPELINE = """
stages:
  tasks:
    cmd: python experiments/make.py data/tasks
    deps: [experiments/make.py]
    params: [seed]
    outs: [data/tasks]
  train:
    cmd: python experiments/make.py runs/full
    deps: [data/tasks, experiments/make.py]
    params: [seed]
    outs: [runs/full, {provenance/full.json: {cache: false}}]
"""
SCRIPT = """
import json, os, pathlib, sys, yaml
seed = yaml.safe_load(open("params.yaml"))["seed"]
out = pathlib.Path(sys.argv[1])
if "RAN" in os.environ:
    with open(os.environ["RAN"], "a") as log:
        log.write(out.parts[0] + " ")
if os.environ.get("BROKEN") == out.parts[0]:
    raise SystemExit("broken")
out.mkdir(parents=True)
value = os.environ.get("DRIFT", "0") if out.parts[0] == "runs" else "0"
rows = [{"iteration": k, "accuracy": seed + k * float(value)} for k in range(3)]
(out / "metrics.jsonl").write_text("".join(json.dumps(row) + "\\n" for row in rows))
if out.parts[0] == "runs":  # the record names the code, which may be another now
    record = pathlib.Path("provenance/full.json")
    record.parent.mkdir(exist_ok=True)
    record.write_text(json.dumps(os.urandom(8).hex()))
"""


CHANGES = {
    "tasks:\n": "kept:\n",
    "make.py data/tasks": "make.py data/kept",
    "outs: [data/tasks]": "outs: [data/kept]",
    "deps: [experiments/make.py]": "deps: [experiments/make.py, start/buffer.jsonl, models/base]",
}
"""A stage with another name and output, which reads what no stage makes. The other one reads what the former made."""


def run(root: Path, *words: str) -> None:
    subprocess.run(words, cwd=root, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """A git repository with a small pipeline that has run."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    monkeypatch.setenv("DVC_NO_ANALYTICS", "1")
    root = tmp_path / "project"
    (root / "experiments").mkdir(parents=True)
    (root / "dvc.yaml").write_text(PIPELINE)
    (root / "params.yaml").write_text("seed: 3\n")
    (root / "experiments" / "make.py").write_text(SCRIPT)
    (root / ".gitignore").write_text("/data/tasks\n/runs/full\n.rla/\n")
    run(root, "git", "init")
    run(root, "dvc", "init")
    run(root, "dvc", "repro")
    run(root, "git", "add", ".")
    run(root, "git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-m", "results")
    return root


def test_an_unknown_revision_is_answered_with_the_nearest(project, capsys):
    assert main(["--root", str(project), "verify-repro", "HAED"]) == 2
    assert capsys.readouterr().err == "rlanything: no revision 'HAED'; nearest: HEAD\n"


def test_a_deterministic_pipeline_comes_out_the_same_and_leaves_nothing(project, capsys):
    assert main(["--root", str(project), "verify-repro"]) == 0
    assert "2 of 2 outputs (2 files) came out with the same bytes" in capsys.readouterr().out
    assert not list((project / ".rla" / "verify").iterdir())


def test_a_pipeline_that_drifts_is_caught_with_its_first_difference(project, monkeypatch, capsys):
    monkeypatch.setenv("DRIFT", "0.5")
    assert main(["--root", str(project), "verify-repro", "HEAD"]) == 1
    printed = capsys.readouterr().out
    assert "same     data/tasks" in printed
    assert "DIFFERS  runs/full" in printed
    assert "runs/full/metrics.jsonl: iteration 1, line 2, accuracy\n  first:  3.0\n  second: 3.5" in printed


def test_an_output_that_nothing_is_recorded_of_is_not_verified(project, capsys):
    lock = yaml.safe_load((project / "dvc.lock").read_text())
    del lock["stages"]["train"]
    (project / "dvc.lock").write_text(yaml.safe_dump(lock))
    assert main(["--root", str(project), "verify-repro"]) == 1
    printed = capsys.readouterr().out
    assert "unknown  runs/full: not in dvc.lock, so nothing says what it was" in printed
    assert "1 of 1 outputs (1 files) came out with the same bytes" in printed


def test_the_claimed_files_themselves_are_compared_with_the_lock(project, capsys):
    damaged = project / "runs" / "full" / "metrics.jsonl"
    text = damaged.read_text().replace("3.0", "9.0")
    damaged.unlink()  # it may be a link into the cache
    damaged.write_text(text)
    assert main(["--root", str(project), "verify-repro"]) == 1
    printed = capsys.readouterr().out
    assert "2 of 2 outputs (2 files) came out with the same bytes" in printed
    assert "CHANGED  runs/full/metrics.jsonl: not what dvc.lock says" in printed


def test_of_a_revision_the_results_that_git_holds_are_compared_with_its_lock(project, capsys):
    """What was forged and committed, while everything is as it was on disk."""
    record = project / "provenance" / "full.json"
    made = record.read_text()
    record.write_text('"forged"')
    run(project, "git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-am", "forged")
    record.write_text(made)
    shutil.rmtree(project / "data")  # what is not there is not compared
    assert main(["--root", str(project), "verify-repro", "HEAD"]) == 1
    assert "CHANGED  provenance/full.json: not what dvc.lock says" in capsys.readouterr().out


def test_a_folder_is_hashed_as_dvc_does(project):
    """Also one with folders in it and files that .dvcignore names; without a list in the cache the folder is named."""
    (project / ".dvcignore").write_text("*.md\n")
    made = "import pathlib as p; [(f.parent.mkdir(parents=True, exist_ok=True), f.write_text('1'))"
    made += " for f in map(p.Path, ['out/b/c.txt', 'out/b.txt', 'out/a.md'])]"
    stage = {"cmd": f'python -c "{made}"', "outs": [{"out": {"cache": False}}]}
    (project / "dvc.yaml").write_text(yaml.safe_dump({"stages": {"make": stage}}))
    run(project, "dvc", "repro")
    assert workspace.from_disk(project).changed == ()
    (project / "out" / "a.md").write_text("2")
    assert workspace.from_disk(project).changed == ()
    (project / "out" / "b" / "c.txt").write_text("2")
    assert workspace.from_disk(project).changed[0].startswith("out")


@pytest.mark.parametrize(
    ("lock", "said"),
    [
        ("stages: []", "stages"),
        ("stages: {tasks: {outs: [data/tasks]}}", r"stages\.tasks\.outs\.0"),
        ("stages: {tasks: {outs: [{path: data/tasks, etag: x}]}}", r"stages\.tasks\.outs\.0\.md5"),
    ],
)
def test_a_lock_that_dvc_did_not_write_is_refused_by_its_field(lock, said):
    with pytest.raises(ConfigError, match=rf"dvc\.lock: .*{said}"):
        read_lock(Path("dvc.lock"), lock, ["tasks"])


@pytest.mark.parametrize("level", ["--project", pytest.param("--global", marks=pytest.mark.long)])
def test_results_in_a_shared_cache_are_not_taken_for_the_second_run(project, monkeypatch, tmp_path, level):
    monkeypatch.setenv("DVC_GLOBAL_CONFIG_DIR", str(tmp_path / "global"))
    run(project, "dvc", "config", level, "cache.dir", str(tmp_path / "shared"))
    run(project, "dvc", "repro", "--force")
    monkeypatch.setenv("DRIFT", "0.5")
    assert not verify.verify(project, None, print).same


@pytest.mark.parametrize("revision", [None, pytest.param("HEAD", marks=pytest.mark.long)])
def test_an_interrupted_verification_goes_on_and_after_a_verdict_everything_runs_again(
    project, monkeypatch, tmp_path, revision
):
    ran = tmp_path / "ran"
    monkeypatch.setenv("RAN", str(ran))
    monkeypatch.setenv("BROKEN", "runs")
    with pytest.raises(ConfigError, match="the pipeline failed"):
        verify.verify(project, revision, print)
    monkeypatch.delenv("BROKEN")
    monkeypatch.setenv("DRIFT", "0.5")
    assert not verify.verify(project, revision, print).same
    assert ran.read_text() == "data runs runs "
    monkeypatch.delenv("DRIFT")
    assert verify.verify(project, revision, print, keep=True).same
    assert verify.verify(project, revision, print).same
    assert ran.read_text() == "data runs runs data runs data runs "


@pytest.mark.long
def test_a_redivided_arm_and_a_record_that_cannot_be_read_are_told_before_it_runs_and_beside_what_differs(
    project, monkeypatch, capsys
):
    """What its record says of a real run: tests/runs/resuming/test_redivide.py."""
    (project / "provenance").mkdir(exist_ok=True)
    (project / "provenance" / "full.json").write_text("{}")
    (project / "provenance" / "\x1b[31m.json").write_text("{}")  # a stranger's revision may have any name
    assert main(["--root", str(project), "verify-repro"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("whether arm \\x1b[31m was redivided is unknown: ")
    assert lines[1].startswith("whether arm full was redivided is unknown: ")
    assert lines[2] == "provenance/full.json: not what dvc.lock says"
    assert lines[3].startswith("the pipeline runs in ")
    assert "2 of 2 outputs" in "\n".join(lines)
    monkeypatch.setenv("DRIFT", "0.5")
    assert main(["--root", str(project), "verify-repro"]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == printed[-2:] == lines[:2]


@pytest.mark.parametrize("revision", [None, pytest.param("HEAD", marks=pytest.mark.long)])
def test_what_stages_read_is_copied_and_what_a_former_stage_made_is_not_expected(project, capsys, revision):
    """The file is in git, the folder is not. What the former stage made is kept by hand."""
    for name in ("start/buffer.jsonl", "models/base/config.json"):
        (project / name).parent.mkdir(parents=True)
        (project / name).write_text("{}\n")
    with (project / ".gitignore").open("a") as ignored:
        ignored.write("/data/kept\n/models/\n")
    declared = PIPELINE
    for old, new in CHANGES.items():
        declared = declared.replace(old, new)
    (project / "dvc.yaml").write_text(declared)
    run(project, "dvc", "repro")
    run(project, "git", "add", ".")
    run(project, "git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-m", "another stage")
    assert "  tasks:" in (project / "dvc.lock").read_text()
    assert main(["--root", str(project), "verify-repro", *([revision] if revision else [])]) == 0
    printed = capsys.readouterr().out
    assert "not run  data/tasks: of a stage that the pipeline no longer has" in printed
    assert "2 of 2 outputs (2 files) came out with the same bytes" in printed


@pytest.mark.parametrize("name", ["start", "start/buffer.jsonl"])
def test_a_copy_is_not_continued_after_a_change_of_what_a_stage_reads(project, name):
    (project / "start").mkdir()
    (project / "start" / "buffer.jsonl").write_text("1\n")
    (project / "dvc.yaml").write_text(PIPELINE.replace("deps: [", f"deps: [{name}, "))
    first = workspace.from_disk(project).root
    assert (first / "start" / "buffer.jsonl").read_text() == "1\n"
    (project / "start" / "buffer.jsonl").write_text("2\n")
    assert (workspace.from_disk(project).root / "start" / "buffer.jsonl").read_text() == "2\n"


def test_the_buffer_that_a_run_starts_from_is_copied_with_the_one_it_is_based_on(project):
    """It is a parameter of the pipeline, and no dependency."""
    for number in range(3):
        (project / "mine" / "buffer").mkdir(parents=True, exist_ok=True)
        (project / "mine" / "buffer" / f"iter_{number:04d}.jsonl").write_text("{}\n")
    (project / "params.yaml").write_text("seed: 3\ntasks: {start: mine/buffer/iter_0001.jsonl}\n")
    copy = workspace.from_disk(project).root
    copied = sorted(path.name for path in (copy / "mine").rglob("*.jsonl"))
    assert copied == ["iter_0000.jsonl", "iter_0001.jsonl"]
    (project.parent / "theirs.jsonl").write_text("{}\n")
    (project / "params.yaml").write_text("seed: 3\ntasks: {start: ../theirs.jsonl}\n")
    workspace.from_disk(project)
    assert not list((project / ".rla").rglob("theirs.jsonl"))


def test_a_pipeline_that_dvc_cannot_read_is_named(project):
    (project / "dvc.yaml").write_text("stages:\n  tasks:\n    cmd: echo ${nothing}\n")
    with pytest.raises(ConfigError, match=r"dvc\.yaml: .*Could not find 'nothing'"):
        workspace.from_disk(project)


@pytest.mark.long
def test_an_earlier_revision_is_verified_whatever_lies_on_disk(project):
    (project / "params.yaml").write_text("seed: 4\n")
    run(project, "dvc", "repro")
    run(project, "git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-am", "another seed")
    said: list[str] = []
    outcome = verify.verify(project, "HEAD~1", said.append, keep=True)
    assert outcome.same
    (copy,) = (project / ".rla" / "verify").iterdir()
    assert '"accuracy": 3.0' in (copy / "runs" / "full" / "metrics.jsonl").read_text()
    assert str(copy) in said[0]


@pytest.mark.long
def test_where_the_recorded_files_are_gone_it_still_says_which_output_differs(project, monkeypatch, capsys):
    monkeypatch.setenv("DRIFT", "1")
    shutil.rmtree(project / "runs")
    shutil.rmtree(project / ".dvc" / "cache")
    assert main(["--root", str(project), "verify-repro"]) == 1
    printed = capsys.readouterr().out
    assert "DIFFERS  runs/full" in printed
    assert "where they differ cannot be told" in printed


@pytest.mark.long
def test_a_failing_pipeline_and_one_that_never_ran_are_errors(project, monkeypatch):
    (project / "experiments" / "make.py").write_text("raise SystemExit('broken')\n")
    with pytest.raises(ConfigError, match=r"the pipeline failed in .*exit code"):
        verify.verify(project, None, print)
    (project / "dvc.lock").unlink()
    with pytest.raises(ConfigError, match="nothing to verify before `dvc repro` has run"):
        verify.verify(project, None, print)


@pytest.mark.parametrize(
    ("outputs", "told"),
    [
        ({"data/tasks": True, "models/policy": False, "runs/full": False}, True),
        ({"data/tasks": False, "models/policy": False}, False),
        ({"data/tasks": True, "models/policy": True, "runs/full": False}, False),
    ],
)
def test_where_the_same_tasks_gave_other_base_models_it_names_this_processor(outputs, told):
    text = verify.text(verify.Outcome(outputs, 9))
    assert ("Another kind of processor" in text) == told
    assert (cpu_model() in text) == told


def test_an_unknown_revision_is_refused_before_anything_runs(project):
    with pytest.raises(ConfigError, match="revision 'nowhere'"):
        verify.verify(project, "nowhere", print)
    assert not (project / ".rla").exists()


def test_a_copy_is_continued_only_when_it_is_the_very_same(project):
    first = workspace.from_disk(project).root
    assert workspace.from_disk(project).root == first
    (project / "params.yaml").write_text("seed: 5\n")
    assert workspace.from_disk(project).root != first


def test_a_copy_is_continued_only_with_the_same_packages(project, monkeypatch):
    copies = [workspace.from_disk(project), workspace.from_revision(project, "HEAD")]
    monkeypatch.setattr(workspace, "packages", lambda: {"torch": "0.1"})
    again = [workspace.from_disk(project), workspace.from_revision(project, "HEAD")]
    assert len({copy.root for copy in [*copies, *again]}) == 4


def test_the_copy_has_everything_that_the_pipeline_depends_on():
    made = ("data", "models", "runs", "evaluation")
    deps = {dep["path"] for stage in _lock().values() for dep in stage.get("deps", [])}
    loose = [d for d in deps if not d.startswith(made) and not d.startswith(workspace.PARTS)]
    assert loose == []


def _lock():
    import yaml

    return yaml.safe_load((ROOT / "dvc.lock").read_text())["stages"]
