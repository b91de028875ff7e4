"""A sweep whose code, experiments/ or inputs change under it stops and says what changed."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from dvc_data.hashfile.hash_info import HashInfo
from dvc_data.hashfile.meta import Meta
from dvc_data.hashfile.tree import Tree
from sweep_cases import ROOT, declared
from test_sweep_worker import folder, project, start, trials, wait_for, write  # noqa: F401  a fixture

from rlanything.config import load, parse
from rlanything.files.records import write_json
from rlanything.planning import compose
from rlanything.planning.pipeline import Pipeline
from rlanything.sweep.declare.check import compose_base
from rlanything.sweep.errors import ProjectChanged
from rlanything.sweep.trials.inputs import Inputs
from rlanything.sweep.trials.key import Key, check_unchanged

EPSILON = parse(compose.compose((), ROOT)).learn.epsilon
NOW, OTHER = f"epsilon: {EPSILON}", f"epsilon: {EPSILON / 2}"
DIFFERENT = f"learn.epsilon: there {EPSILON}, here {EPSILON / 2}"


def change(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


@pytest.fixture
def own(tmp_path) -> Path:
    """A project whose files can be changed."""
    root = tmp_path / "own"
    for name in ("experiments", "envs", "rlanything/loop"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "dvc.yaml").symlink_to(ROOT / "dvc.yaml")
    compose.write(root / "params.yaml", (), root)
    write_json(root / "data" / "tasks" / "manifest.json", {})
    write_json(root / "models" / "bootstrap.json", {})
    return root


@pytest.mark.parametrize(
    ("file", "before", "after", "expected"),
    [
        ("experiments/config.yaml", NOW, OTHER, DIFFERENT),
        (
            "rlanything/loop/rollout.py",
            "import",
            "import  ",
            "rlanything/loop/rollout.py: another content",
        ),
        ("models/bootstrap.json", "{}", "{} ", "models/bootstrap.json: another content"),
        ("experiments/config.yaml", "epsilon:", "epsilom:", "epsilom"),
    ],
)
def test_every_change_of_what_trials_have_in_common_stops_the_sweep(own, file, before, after, expected):
    sweep, inputs = declared(), Inputs.of(own, own / "params.yaml", own / ".rla")
    began = Key.of(sweep.arms, compose_base(sweep, own), inputs)
    check_unchanged(sweep, inputs, began)
    change(own / file, before, after)
    with pytest.raises(ProjectChanged) as caught:
        check_unchanged(sweep, inputs, began)
    assert expected in str(caught.value)
    change(own / file, after, before)
    check_unchanged(sweep, inputs, began)


def test_tasks_and_models_of_other_values_than_those_of_today_are_not_taken_for_the_projects_own(own):
    """`config write` changes params.yaml and makes nothing."""
    config = load(own / "params.yaml")
    recorded = Pipeline(own).params("tasks", config.model_dump(mode="json", by_alias=True))
    lock = {"stages": {"tasks": {"params": {"params.yaml": recorded}}}}
    (own / "dvc.lock").write_text(yaml.safe_dump(lock))
    assert Inputs.of(own, own / "params.yaml", own / ".rla").project == config
    lock["stages"]["tasks"]["params"]["params.yaml"]["seed"] = config.seed + 1
    (own / "dvc.lock").write_text(yaml.safe_dump(lock))
    inputs = Inputs.of(own, own / "params.yaml", own / ".rla")
    assert inputs.project is None
    assert inputs.place(config).parent == own / ".rla"


def test_what_older_code_made_is_not_taken_for_the_projects_own(own):
    """Neither where a file of a folder changed that dvc.lock has as a whole, nor where a single file did."""
    config, loop, single = load(own / "params.yaml"), own / "rlanything" / "loop", own / "envs" / "splits.py"
    (loop / "notes.md").write_text("for people")
    deps = [dep("rlanything/loop", of_folder(loop)), dep("envs/splits.py", md5_of(single))]
    lock = {"stages": {"tasks": {"deps": deps, "outs": [dep("data/tasks", "a.dir")]}}}
    (own / "dvc.lock").write_text(yaml.safe_dump(lock))
    assert found(own).place(config) == own
    for file in (loop / "rollout.py", single):
        change(file, "import", "import  ")
        assert found(own).place(config).parent == own / ".rla"
        assert found(own, older=True).place(config) == own, "who compares the bytes does not ask"
        change(file, "import  ", "import")
        assert found(own).place(config) == own
    lock["stages"]["bootstrap"] = {"deps": [dep("data/tasks", "b.dir")]}
    (own / "dvc.lock").write_text(yaml.safe_dump(lock))
    assert found(own).place(config).parent == own / ".rla", "the base models learned from other tasks"


def found(root: Path, *, older: bool = False) -> Inputs:
    return Inputs.of(root, root / "params.yaml", root / ".rla", older=older)


def dep(path: str, md5: str) -> dict[str, str]:
    return {"path": path, "hash": "md5", "md5": md5}


def md5_of(file: Path) -> str:
    return hashlib.md5(file.read_bytes()).hexdigest()


def of_folder(folder: Path) -> str:
    """As DVC computes it, which ignores what .dvcignore says."""
    tree = Tree()
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix != ".md":
            tree.add(path.relative_to(folder).parts, Meta(), HashInfo("md5", md5_of(path)))
    tree.digest()
    return str(tree.hash_info.value)


@pytest.mark.slow
@pytest.mark.integration
def test_a_trial_under_which_experiments_change_is_not_recorded(project):  # noqa: F811
    (project / "experiments").unlink()
    shutil.copytree(ROOT / "experiments", project / "experiments")
    worker: subprocess.Popen[str] = start(project, write(project))
    wait_for(project, ".rla/sweeps/case-*/trials/0000/.rla/live/*/full/seed-0/iterations/0000", worker)
    change(project / "experiments" / "config.yaml", NOW, OTHER)
    said, _ = worker.communicate(timeout=300)
    assert worker.returncode == 2
    assert "changed while the sweep ran" in said
    assert DIFFERENT in said
    assert [t.state.name for t in trials(folder(project))] == ["RUNNING", "WAITING", "WAITING"]
    assert not (folder(project) / "trials" / "0000" / "runs").exists()
    assert (folder(project) / "trials" / "0000" / "log.txt").is_file()
