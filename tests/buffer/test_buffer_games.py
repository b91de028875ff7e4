"""Export and import of a buffer as games: the files of a task family."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from buffer_cases import command, write_house

from envs.alfworld.family import AlfworldFamily
from rlanything.buffer import TaskBuffer, snapshot_path, write_snapshot
from rlanything.buffer.views import export, import_
from rlanything.buffer.views.find.names import find
from rlanything.buffer.views.find.runs import open_run
from rlanything.core.types import Task


@pytest.fixture
def here(tmp_path, monkeypatch):
    write_house(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


FAMILY = """
import json
from rlanything.core.types import Task
from rlanything.files import reader


def write_game(task, root):
    if "bad" in task.instruction:
        raise ValueError("no game")
    folder = root / task.task_id[:8]
    folder.mkdir(parents=True)
    (folder / "traj_data.json").write_text(json.dumps([task.env, task.instruction, task.payload]))
    return folder


def read_game(folder):
    return Task(*json.loads((folder / "traj_data.json").read_text()))


class Toy:
    write_game = staticmethod(write_game)
    read_game = staticmethod(read_game)
"""


@pytest.fixture
def family(here, monkeypatch):
    (here / "toyenv").mkdir()
    (here / "toyenv" / "family.py").write_text(FAMILY)
    (here / "params.yaml").write_text("env: {_target_: toyenv.family.Toy}\n")
    monkeypatch.syspath_prepend(here)
    monkeypatch.setenv("RLANYTHING_ALLOW", "toyenv")


def test_games_there_and_back(here, family, capsys):
    assert command("export", "full/seed-0@0", "games", "--games") == 0
    assert command("import", "games", "runs/new", "--games") == 0
    assert open_run(here / "runs/new").latest == find("full/seed-0@0").buffer
    manifest = json.loads((here / "games/slots.json").read_text())
    manifest["slots"][0]["folder"] = "../elsewhere"
    (here / "games/slots.json").write_text(json.dumps(manifest))
    assert command("import", "games", "runs/other", "--games") == 2
    assert "slot 0 points outside the folder" in capsys.readouterr().err
    (here / "games/slots.json").unlink()
    assert len(import_("games", "runs/other", games=True)) == 12


def test_games_of_another_export_are_replaced_whole(here, family):
    (here / "games").mkdir()
    for name in ("full/seed-0@0", "full/seed-0", "full/seed-0"):
        assert command("export", name, "games", "--games") == 0
        assert len(list((here / "games").iterdir())) == 12 + 1
    (here / "games/slots.json").unlink()
    games, buffer = import_("games", "runs/new", games=True), find("full/seed-0").buffer
    heads = [{made.head(slot).task_id for slot in made.slots} for made in (games, buffer)]
    assert heads[0] == heads[1]


@pytest.mark.parametrize(
    ("mine", "message"),
    [
        ("games", "is a file; name a folder"),
        ("games/slots.json", "holds files, and not the games of an export"),
        ("games/notes.txt", "holds files, and not the games of an export"),
        ("games/.notes/mine.txt", "holds files, and not the games of an export"),
    ],
)
def test_games_replace_nothing_of_the_user(here, family, capsys, mine, message):
    (here / mine).parent.mkdir(parents=True, exist_ok=True)
    (here / mine).write_text("precious")
    before = _files(here)
    assert command("export", "full/seed-0", "games", "--games") == 2
    assert f"export games: {message}" in capsys.readouterr().err
    assert (here / mine).read_text() == "precious"
    assert _files(here) == before


def _files(folder: Path) -> list[Path]:
    """What is below a folder, but for what Python compiles when it is imported."""
    return sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)


@pytest.mark.parametrize("mine", ["notes.txt", "GAME/notes.txt", "empty/", "GAME"])
def test_games_to_which_something_was_added_or_of_which_some_are_gone_stay(here, family, capsys, mine):
    assert command("export", "full/seed-0@0", "games", "--games") == 0
    game = json.loads((here / "games/slots.json").read_text())["slots"][0]["folder"]
    place = here / "games" / mine.replace("GAME", game)
    if mine == "GAME":
        shutil.rmtree(place)
    elif mine == "empty/":
        place.mkdir()
    else:
        place.write_text("precious")
    before = sorted(here.rglob("*"))
    assert command("export", "full/seed-0", "games", "--games") == 2
    assert "is not as the export left it; name another folder" in capsys.readouterr().err
    assert sorted(here.rglob("*")) == before


def test_games_that_fail_leave_what_was_there(here, family, capsys):
    assert command("export", "full/seed-0@0", "games", "--games") == 0
    before = sorted(here.rglob("*"))
    write_snapshot(TaskBuffer.start([Task("toy", "bad", {}, {})]), here / "bad.jsonl")
    assert command("export", "bad.jsonl", "games", "--games") == 2
    assert "slot 0: no game" in capsys.readouterr().err
    assert sorted(here.rglob("*")) == sorted([*before, here / "bad.jsonl"])
    assert command("export", "full/seed-0", "runs/full/seed-0/games", "--games") == 2
    assert "lies in the run" in capsys.readouterr().err


def test_games_that_are_none(here, family, capsys):
    (here / "none").mkdir()
    assert command("import", "none", "runs/x", "--games") == 2
    assert "no games there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("envs.coding.family.CodingFamily", "no GameFiles, because it has no read_game, write_game"),
        ("json.decoder.JSONDecoder", "not imported"),
    ],
)
def test_a_family_whose_tasks_are_no_files(here, capsys, target, message):
    (here / "params.yaml").write_text(f"env: {{_target_: {target}}}\n")
    assert command("export", "full/seed-0", "games", "--games") == 2
    assert message in capsys.readouterr().err


@pytest.mark.integration
def test_alfworld_games_there_and_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tasks: list[Task] = AlfworldFamily().make("train", 4, 0)
    write_snapshot(TaskBuffer.start(tasks), snapshot_path(tmp_path / "runs/full/buffer", 0))
    (tmp_path / "params.yaml").write_text("env: {_target_: envs.alfworld.family.AlfworldFamily}\n")
    export("full", tmp_path / "games", games=True)
    again = import_(tmp_path / "games", tmp_path / "runs/new", games=True)
    assert [again.head(slot) for slot in again.slots] == tasks
