"""What a stage's results depend on is found from its imports: all of it, and nothing else."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from stage_cases import ROOT, small, small_coding

from rlanything.runs import imports
from rlanything.runs.executors.worker import code_of
from rlanything.runs.imports import (
    code_files,
    code_hashes,
    outside_files,
    packages,
    place_of,
    targets,
    whole_folders,
)

FILES = {
    "rlanything/__init__.py": "",
    "rlanything/start.py": """
from typing import TYPE_CHECKING
import typing
import json, rlanything.plain
from rlanything.package import member
from rlanything.package.inner import something
from .beside import other
if TYPE_CHECKING:
    from rlanything.typed import Never
if typing.TYPE_CHECKING:
    import rlanything.typed
else:
    import rlanything.untyped
PROGRAM = ["-m", "envs.program"]
PARTS = "envs.parts"
SENTENCE = "see envs.named for more"
def late():
    from rlanything import inside
""",
    "rlanything/plain.py": "",
    "rlanything/package/__init__.py": "from rlanything.package import own",
    "rlanything/package/own.py": "",
    "rlanything/package/member.py": "",
    "rlanything/package/inner.py": "something = 1",
    "rlanything/package/unused.py": "",
    "rlanything/package/table.json": "{}",
    "rlanything/package/data/deep.txt": "",
    "rlanything/package/README.md": "",
    "rlanything/package/room/__init__.py": "",
    "rlanything/package/room/other.json": "{}",
    "rlanything/beside.py": "import rlanything.start",
    "rlanything/typed.py": "",
    "rlanything/untyped.py": "",
    "rlanything/inside.py": "",
    "rlanything/inside/facts.json": "{}",
    "envs/__init__.py": "",
    "envs/program.py": "",
    "envs/named.py": "",
    "envs/parts/__init__.py": "",
    "envs/parts/one.py": "",
}
NOT_NEEDED = {
    "rlanything/package/unused.py",
    "rlanything/package/README.md",
    "rlanything/package/room/__init__.py",
    "rlanything/package/room/other.json",
    "rlanything/typed.py",
    "envs/named.py",
}
"""`inside.py` is found although a folder of data has its name; the folder is found as data beside a module."""


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """A project in which every way to depend on a file is there once."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(imports, "package_folder", lambda name: tmp_path / name)
    return tmp_path


def test_all_that_is_imported_or_started_is_found_and_nothing_else(project):
    found = code_files(["rlanything.start"])
    assert set(found) == set(FILES) - NOT_NEEDED
    assert all(path == project / name for name, path in found.items())


def test_a_class_stands_for_its_module_and_other_projects_for_nothing(project):
    assert set(code_files(["envs.named.Family", "torch.nn.Linear"])) == {"envs/__init__.py", "envs/named.py"}


def test_a_folder_stands_for_its_files_when_most_are_needed(project):
    """Two thirds of a folder are most of it; what a folder needs inside another one counts there, too."""
    parts = {"envs/most": ("a.py", "b.py"), "envs/half": ("a.py",), "envs/deep/all": ("a.py", "b.py")}
    for folder, used in parts.items():
        (project / folder).mkdir(parents=True)
        for name in (*used, "unused.py")[: len(used) + ("all" not in folder)]:
            (project / folder / name).touch()
    for name in ("x.py", "y.py"):
        (project / "envs/deep" / name).touch()
    needed = {f"{folder}/{name}": project / folder / name for folder, used in parts.items() for name in used}
    assert whole_folders(needed) == ["envs/deep/all", "envs/half/a.py", "envs/most"]


def test_a_module_that_comes_or_goes_is_noticed_though_the_file_that_names_it_is_as_before(project):
    known = set(code_files(["rlanything.start"]))
    (project / "envs/parts/two.py").write_text("import rlanything.late")
    (project / "rlanything/late.py").touch()
    assert set(code_files(["rlanything.start"])) == {*known, "envs/parts/two.py", "rlanything/late.py"}
    (project / "envs/parts/two.py").unlink()
    (project / "rlanything/package/own.py").unlink()
    assert set(code_files(["rlanything.start"])) == known - {"rlanything/package/own.py"}


def test_what_many_modules_import_is_looked_for_once(project, monkeypatch):
    asked = []

    def counted(real):
        def ask(*args, **kwargs):
            asked.append(args)
            return real(*args, **kwargs)

        return ask

    for name in ("stat", "scandir"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    code_files(["rlanything.start"])
    before, more = len(asked), 50
    for k in range(more):
        (project / f"envs/parts/part{k}.py").write_text("from rlanything.package.member import a, b, c, d, e")
    asked.clear()
    assert len(code_files(["rlanything.start"])) == len(FILES) - len(NOT_NEEDED) + more
    assert len(asked) < before + 5 * more


def test_packages_of_others_are_named_from_the_imports_anywhere_in_the_code(project):
    (project / "rlanything/inside.py").write_text("def late():\n    import torch.nn, numpy as np, json")
    (project / "rlanything/typed.py").write_text("import never")
    assert packages(["rlanything.start", "lightning.pytorch.loggers.CSVLogger"]) == {
        "torch", "numpy", "lightning"
    }  # fmt: skip


OUTSIDE = {
    "game_outside/__init__.py": "",
    "game_outside/family.py": """
from rlanything.package import own
from game_outside.rooms import one
import other_outside
""",
    "game_outside/rooms/one.py": "",
    "game_outside/rooms/two.py": "",
    "game_outside/words.json": "{}",
    "other_outside.py": "",
    "alone_outside.py": "",
    "beside.txt": "",
}


@pytest.fixture
def outside(tmp_path_factory, monkeypatch) -> Path:
    """A folder on Python's path with packages that are not the project's."""
    place = tmp_path_factory.mktemp("outside")
    for name, text in OUTSIDE.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    monkeypatch.syspath_prepend(place)
    return place


def test_the_package_of_a_class_outside_of_the_project_counts_with_what_it_imports(project, outside):
    found = outside_files(["rlanything.start", "game_outside.family.Game"])
    names = {"__init__.py", "family.py", "words.json", "rooms/one.py"}
    assert set(found) == {f"game_outside/{name}" for name in names}
    assert all(path == outside / name == place_of(Path(name)) for name, path in found.items())
    assert "rlanything/package/own.py" in code_files(["game_outside.family.Game"])
    assert "game_outside/family.py" not in code_files(
        ["game_outside.family.Game"]
    )  # DVC would look for it here


def test_a_single_module_outside_of_the_project_counts_without_what_lies_beside_it(project, outside):
    found = outside_files(["alone_outside.Game"])
    assert found == {"alone_outside.py": outside / "alone_outside.py"}
    assert place_of(Path("alone_outside.py")) == outside / "alone_outside.py"


def test_an_installed_package_counts_by_its_version_and_one_that_is_missing_not_at_all(project):
    assert outside_files(["torch.nn.Linear", "no_such_package.Game"]) == {}


def test_an_edit_of_code_outside_of_the_project_changes_the_code_of_runs_and_workers(outside):
    def now() -> tuple[dict[str, str], str]:
        return code_hashes(["game_outside.family.Game"]), code_of({"_target_": "game_outside.family.Game"})

    before = now()
    edit(outside / "game_outside/rooms/two.py")
    assert now() == before
    edit(outside / "game_outside/rooms/one.py")
    assert all(one != other for one, other in zip(now(), before, strict=True))


def test_classes_are_found_wherever_the_configuration_names_them():
    data = {"env": {"_target_": "a.B"}, "train": {"callbacks": [{"_target_": "c.D"}, {"x": 1}]}}
    assert list(targets(data)) == ["a.B", "c.D"]


@pytest.fixture
def copy(tmp_path, monkeypatch) -> Path:
    """The whole project's code, to be changed."""
    for name in ("rlanything", "envs", "tests/runs", "benchmarks"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(imports, "package_folder", lambda name: tmp_path / name)
    return tmp_path


def train_code(config=None) -> dict[str, str]:
    data = (config or small()).model_dump(mode="json", by_alias=True)
    return code_hashes(["rlanything.stages.train", *targets(data)])


def test_an_edit_of_any_file_of_a_runs_code_changes_it_and_an_edit_of_any_other_file_does_not(copy):
    before = train_code()
    sources = {path.relative_to(copy).as_posix(): path for path in copy.rglob("*.py")}
    assert len(sources.keys() - before.keys()) > 100
    for name in sources.keys() - before.keys():
        edit(sources[name])
    assert train_code() == before
    for name in before:
        edit(copy / name)
    after = train_code()
    assert after.keys() == before.keys()
    assert [name for name in before if after[name] == before[name]] == []


def edit(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


@pytest.mark.parametrize(
    "place",
    [
        "rlanything/report",
        "rlanything/planning",
        "rlanything/repro",
        "rlanything/sweep",
        "rlanything/cli.py",
        "rlanything/buffer/views",
        "rlanything/stages/report.py",
        "rlanything/stages/evaluate.py",
        "envs/coding",
    ],
)
def test_what_reads_results_or_is_not_configured_is_no_code_of_a_run(place):
    assert [name for name in train_code() if name == place or name.startswith(f"{place}/")] == []


def test_a_run_has_the_code_and_data_of_the_environment_and_engine_that_are_configured():
    games, programs = train_code(), train_code(small_coding())
    data = {"envs/alfworld/games/scene_facts.py", "envs/alfworld/facts/alfred.pddl"}
    assert {"envs/alfworld/family.py", *data} <= games.keys()
    assert {"envs/coding/family.py", "envs/coding/sandbox/inside/serve.py"} <= programs.keys()
    assert not [name for name in programs if name.startswith("envs/alfworld")]
    assert "rlanything/engines/native.py" in games
    assert "rlanything/engines/transformers.py" not in games


@pytest.mark.parametrize(
    ("stage", "room"),
    [
        ("tasks", "rlanything/loop"),
        ("tasks", "rlanything/engines"),
        ("tasks", "rlanything/learn"),
        ("bootstrap.stage", "rlanything/runs/seedrun.py"),
        ("evaluate", "rlanything/learn/module.py"),
        ("evaluate", "rlanything/runs/seedrun.py"),
        ("report", "rlanything/runs"),
        ("report", "rlanything/loop"),
    ],
)
def test_a_stage_depends_on_no_room_that_it_has_no_use_for(stage, room):
    found = code_files([f"rlanything.stages.{stage}"])
    assert [name for name in found if name == room or name.startswith(f"{room}/")] == []
