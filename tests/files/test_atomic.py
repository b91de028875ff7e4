"""A file is what it was or the new one, whatever happens while it is written."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from rlanything.files import atomic
from rlanything.files.atomic import whole, write_text


def test_a_text_that_cannot_be_written_leaves_the_old_one_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file.txt"
    write_text(path, "old")

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        write_text(path, "new")
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.txt"]


def test_a_reader_sees_the_old_text_until_the_new_one_is_on_disk(tmp_path, monkeypatch):
    path = tmp_path / "file.txt"
    write_text(path, "old")
    seen: list[tuple[str, str]] = []
    sync = atomic.sync
    monkeypatch.setattr(
        atomic, "sync", lambda place: (seen.append((kind(place), path.read_text())), sync(place))
    )
    write_text(path, "new")
    assert seen == [("file", "old"), ("folder", "new")]


def test_a_folder_is_on_disk_before_it_has_its_name(tmp_path, monkeypatch):
    place = tmp_path / "folder"
    synced: list[tuple[str, bool]] = []
    sync = atomic.sync
    monkeypatch.setattr(
        atomic,
        "sync",
        lambda path: (synced.append((str(path.relative_to(tmp_path)), place.exists())), sync(path)),
    )
    with whole(place) as folder:
        (folder / "file").write_text("text")
    assert synced == [(".tmp-folder/file", False), (".tmp-folder", False), (".", True)]


def test_a_folder_that_cannot_be_written_leaves_the_old_one_and_nothing_else(tmp_path):
    place = tmp_path / "folder"
    with whole(place) as folder:
        (folder / "file").write_text("old")
    with pytest.raises(ValueError, match="stop"):  # noqa: PT012, SIM117
        with whole(place) as folder:
            (folder / "file").write_text("new")
            raise ValueError("stop")
    assert (place / "file").read_text() == "old"
    assert os.listdir(tmp_path) == ["folder"]


def kind(place: Path) -> str:
    return "folder" if place.is_dir() else "file"


def test_a_kill_between_two_renames_leaves_the_old_folder_and_the_next_write_puts_it_back(tmp_path):
    place = tmp_path / "folder"
    place.with_name(".old-folder").mkdir()
    place.with_name(".old-folder").joinpath("file").write_text("old")
    place.with_name(".tmp-folder").mkdir()
    with whole(place) as folder:
        assert (place / "file").read_text() == "old"
        (folder / "file").write_text("new")
    assert (place / "file").read_text() == "new"
    assert os.listdir(tmp_path) == ["folder"]


def test_a_folder_that_was_being_removed_is_not_put_back(tmp_path, monkeypatch):
    place = tmp_path / "folder"
    place.mkdir()
    monkeypatch.setattr(atomic.shutil, "rmtree", lambda folder: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        atomic.remove(place)
    monkeypatch.undo()
    with whole(place):
        assert not place.exists()


def test_a_removal_that_was_killed_is_finished_by_the_next_start(tmp_path, monkeypatch):
    place = tmp_path / "folder"
    place.mkdir()
    (place / "file").write_text("large")
    monkeypatch.setattr(atomic.shutil, "rmtree", lambda folder: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        atomic.remove(place)
    assert list(tmp_path.rglob("file")), "nothing was left behind, so this shows nothing"
    monkeypatch.undo()
    atomic.clear_removed(place)
    assert not list(tmp_path.iterdir())


def test_a_part_of_an_old_folder_is_never_put_back(tmp_path, monkeypatch):
    """Killed while the old folder was removed, when the new one was in place, which somebody has removed since."""
    place = tmp_path / "folder"
    for text in ("old", "new"):
        with monkeypatch.context() as patch:
            if text == "new":
                patch.setattr(atomic.shutil, "rmtree", lambda folder: 1 // 0)
            with suppress(ZeroDivisionError), whole(place) as folder:
                (folder / "file").write_text(text)
    assert (place / "file").read_text() == "new"
    assert list(tmp_path.glob(".*/file")), "nothing was left behind, so this shows nothing"
    shutil.rmtree(place)
    with whole(place):
        assert not place.exists()
    assert os.listdir(tmp_path) == ["folder"]


def test_two_machines_that_share_a_folder_may_have_processes_of_the_same_number(tmp_path):
    """Each has a file of its own beside the place; the last one that ends stays."""
    path = tmp_path / "file.txt"
    with atomic.beside(path) as mine:
        with atomic.beside(path) as theirs:
            assert mine != theirs
            theirs.write_text("theirs")
        mine.write_text("mine")
    assert path.read_text() == "mine"
    with suppress(KeyError), atomic.beside(path) as left:
        left.write_text("half")
        os.link(left, left.with_name(left.name.replace("file.txt.", "file.txt.7")))
        raise KeyError
    atomic.clear_leftovers(path)
    assert os.listdir(tmp_path) == ["file.txt"]
