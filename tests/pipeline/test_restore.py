"""One command goes back to what is recorded, after a real `dvc exp run` that was interrupted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rlanything.cli import main
from rlanything.files.project import workspaces

ROOT = Path(__file__).parents[2]
RECORDED = str(yaml.safe_load((ROOT / "params.yaml").read_text())["signals"]["lambda"])
MADE = "python -c \"import pathlib, yaml; x = yaml.safe_load(open('params.yaml'))['signals']['lambda']; {}\""
SAVE = "[pathlib.Path(d).mkdir(exist_ok=True) or pathlib.Path(d, 'a').write_text(str(x)) for d in ('models', 'report')]"
PIPELINE = f"""
stages:
  bootstrap:
    cmd: {MADE.format(SAVE)}
    params: [signals.lambda]
    outs:
    - models
    - report/a: {{cache: false}}
  train:
    cmd: grep -qxF {RECORDED} models/a || eval "$END"; sleep 1; mkdir -p runs; cp models/a runs/a
    deps: [models]
    outs: [runs]
"""


def do(root: Path, *command: str, code: int = 0, end: str = "") -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "DVC_NO_ANALYTICS": "1",
        "END": end,
        **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert bool(done.returncode) == bool(code), done.stdout + done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A project whose last commit has results."""
    root = tmp_path_factory.mktemp("recorded")
    shutil.copyfile(ROOT / "params.yaml", root / "params.yaml")
    (root / "dvc.yaml").write_text(PIPELINE)
    (root / "notes.txt").write_text("as committed\n")
    for words in (["git", "init", "-q"], ["dvc", "init", "-q"], ["dvc", "repro", "-q"], ["git", "add", "."]):
        do(root, *words)
    do(root, "git", "commit", "-qm", "recorded")
    return root


@pytest.fixture
def project(made, tmp_path) -> Path:
    shutil.copytree(made, tmp_path / "project", symlinks=True)
    return tmp_path / "project"


def contents(root: Path) -> dict[str, str]:
    names = ("params.yaml", "dvc.lock", "models/a", "report/a", "runs/a")
    return {name: (root / name).read_text() for name in names if (root / name).is_file()}


@pytest.mark.long
@pytest.mark.integration
@pytest.mark.parametrize("end", ["kill -INT $$", "kill -KILL $PPID"])
def test_an_interrupted_experiment_is_taken_back_and_nothing_else(project, capsys, end):
    """Ctrl-C ends the stage, and a kill also DVC."""
    before = contents(project)
    assert before["models/a"] == before["report/a"] == before["runs/a"] == RECORDED
    do(project, "dvc", "exp", "run", "-S", "signals.lambda=0.75", code=1, end=end)
    left = contents(project)
    assert left["models/a"] == left["report/a"] == "0.75", "the first stage has finished"
    assert left["dvc.lock"] != before["dvc.lock"]
    (project / "notes.txt").write_text("mine\n")
    assert main(["--root", str(project), "config", "restore"]) == 0
    assert contents(project) == before
    assert (project / "notes.txt").read_text() == "mine\n"
    assert (project / ".rla" / "restored" / "dvc.lock.before").read_text() == left["dvc.lock"]
    assert "params.yaml, report/a: as in the last commit" in capsys.readouterr().out
    do(project, "git", "diff", "--quiet", "HEAD", "--", "params.yaml", "dvc.lock", "report")


@pytest.mark.integration
def test_results_that_no_cache_has_are_kept_until_they_are_given_up(project, capsys):
    before = contents(project)
    (project / "runs" / "a").unlink()
    (project / "runs" / "a").write_text("made by hand")
    mine = (project / "params.yaml").read_text().replace(f"  lambda: {RECORDED}", "  lambda: 0.75")
    (project / "params.yaml").write_text(mine)
    assert main(["--root", str(project), "config", "restore"]) == 2
    said = capsys.readouterr().err
    assert "`rlanything config restore --force`" in said
    assert "params.yaml: as it was, kept in .rla/restored/params.yaml.before" in said
    assert (project / ".rla" / "restored" / "params.yaml.before").read_text() == mine
    assert workspaces(project) == [], "what is kept there is no workspace"
    assert (project / "runs" / "a").read_text() == "made by hand"
    assert main(["--root", str(project), "config", "restore", "--force"]) == 0
    assert contents(project) == before


def test_a_changed_pipeline_is_refused_before_anything_changes(project, capsys):
    params = (project / "params.yaml").read_text().replace(f"  lambda: {RECORDED}", "  lambda: 0.75")
    (project / "params.yaml").write_text(params)
    (project / "dvc.yaml").write_text(PIPELINE + "# mine\n")
    assert main(["--root", str(project), "config", "restore"]) == 2
    assert "dvc.yaml: not that of the last commit" in capsys.readouterr().err
    assert (project / "params.yaml").read_text() == params


def test_a_workspace_has_nothing_to_restore(tmp_path, capsys):
    shutil.copyfile(ROOT / "params.yaml", tmp_path / "params.yaml")
    assert main(["--root", str(tmp_path), "config", "restore"]) == 2
    assert "a workspace has nothing to restore" in capsys.readouterr().err


def test_a_new_result_that_is_staged_stays_and_is_named(project, capsys):
    before = contents(project)
    params = (project / "params.yaml").read_text().replace(f"  lambda: {RECORDED}", "  lambda: 0.75")
    (project / "params.yaml").write_text(params)
    (project / "report" / "b").write_text("new")
    do(project, "git", "add", "report")
    assert main(["--root", str(project), "config", "restore"]) == 0
    assert contents(project) == before
    assert (project / "report" / "b").read_text() == "new"
    assert "report/b: not in the last commit, and left as it is" in capsys.readouterr().out


def test_results_that_git_does_not_know_are_moved_and_named(project, capsys):
    """Pages of a finished experiment's own arm; the user's notes beside them stay."""
    (project / ".gitignore").write_text("/provenance/starts/\n")
    (project / "provenance").mkdir()
    (project / "provenance" / "full.json").write_text("recorded")
    do(project, "git", "add", "provenance")
    do(project, "git", "commit", "-qm", "a record")
    added = ["report/buffers/größe.html", "report/index.html", "provenance/own.json"]
    stay = ["report/mine/notes.md", "report/notes.md", "provenance/starts/own.json"]
    for text in ("first", "second"):
        for name in (*added, *stay):
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text(text)
        capsys.readouterr()
        assert main(["--root", str(project), "config", "restore"]) == 0
        said = capsys.readouterr().out
        for name in added:
            kept = f".rla/restored/{name}" + (".2" if text == "second" else "")
            assert f"{name}: not in the last commit, and moved to {kept}\n" in said
            assert not (project / name).exists()
            assert (project / kept).read_text() == text
        assert all((project / name).read_text() == text for name in stay)
    assert (project / ".rla" / "restored" / "report" / "index.html").read_text() == "first"


def test_results_that_the_last_commit_never_had_stay(project):
    do(project, "git", "rm", "-qr", "--cached", "report")
    do(project, "git", "commit", "-qm", "no report")
    (project / "report" / "index.html").write_text("mine")
    assert main(["--root", str(project), "config", "restore"]) == 0
    assert (project / "report" / "index.html").is_file()


def test_a_result_is_taken_back_whatever_letters_its_name_has(project):
    file = project / "report" / "größe"
    file.write_text("recorded")
    do(project, "git", "add", "report")
    do(project, "git", "commit", "-qm", "an arm of that name")
    file.write_text("changed")
    assert main(["--root", str(project), "config", "restore"]) == 0
    assert file.read_text() == "recorded"


@pytest.mark.integration
def test_a_renamed_record_is_taken_back_too(project):
    """git would name the new file alone, which the last commit does not have."""
    (project / "provenance").mkdir()
    record = project / "provenance" / "full.json"
    record.write_text("".join(f'"line {k}"\n' for k in range(50)))
    do(project, "git", "add", "provenance")
    do(project, "git", "commit", "-qm", "a record")
    do(project, "git", "mv", "provenance/full.json", "provenance/other.json")
    (project / "params.yaml").write_text("seed: 1\n")
    assert main(["--root", str(project), "config", "restore"]) == 0
    assert record.is_file()
    assert contents(project)["params.yaml"] != "seed: 1\n"
