"""What a command writes where its user said appears whole or not at all, and nothing of the user goes."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from rlanything.core.errors import ConfigError
from rlanything.files import outputs
from rlanything.files.outputs import Output, output


def ours(place: Path) -> str:
    """A file or folder that begins as the command's own may be replaced."""
    first = place / "mark" if place.is_dir() else place
    return "" if first.is_file() and first.read_text().startswith("ours") else "is yours"


def put(place: Output, text: str, folder: bool) -> None:
    if not folder:
        place.write_text(text)
        return
    with place.folder() as made:
        (made / "mark").write_text(text)


def text_of(place: Path) -> str:
    return (place / "mark" if place.is_dir() else place).read_text()


@pytest.fixture(params=[True, False], ids=["folder", "file"])
def folder(request) -> bool:
    return request.param


def test_names_beside_the_place_stay(tmp_path, folder):
    place = tmp_path / "page"
    mine = [".old-page", ".tmp-page", ".gone-page", f".page.{os.getpid()}.tmp"]
    for name in mine:
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.tex").write_text("x")
    for text in ("ours 1", "ours 2"):
        put(output(place, ours), text, folder)
        assert text_of(place) == text
    assert {path.name for path in tmp_path.iterdir()} == {*mine, "page"}
    assert all((tmp_path / name / "thesis.tex").read_text() == "x" for name in mine)


@pytest.mark.parametrize("before", [False, True], ids=["absent", "there"])
def test_the_second_of_two_writers_refuses(tmp_path, folder, before):
    place = tmp_path / "page"
    if before:
        put(output(place, ours), "ours 0", folder)
    first, second = output(place, ours), output(place, ours)
    put(first, "ours 1", folder)
    with pytest.raises(ConfigError, match="was made or changed while this command ran; it stays as it is"):
        put(second, "ours 2", folder)
    assert text_of(place) == "ours 1"
    assert os.listdir(tmp_path) == ["page"]


def test_what_became_the_user_s_meanwhile_stays(tmp_path):
    place = tmp_path / "page"
    put(output(place, ours), "ours", True)
    second = output(place, ours)
    with pytest.raises(ConfigError, match="it stays as it is"), second.folder():
        (place / "mark").write_text("mine")
    assert text_of(place) == "mine"
    assert os.listdir(tmp_path) == ["page"]


def test_what_came_after_the_last_look_stays(tmp_path, folder, monkeypatch):
    """The file system itself refuses: between a look and a write anything may happen."""
    place = tmp_path / "page"
    found = output(place, ours)
    monkeypatch.setattr(Output, "_require_unchanged", lambda self: place.write_text("mine"))
    with pytest.raises(ConfigError, match="it stays as it is"):
        put(found, "ours", folder)
    assert place.read_text() == "mine"
    assert os.listdir(tmp_path) == ["page"]


def test_another_folder_that_came_after_the_last_look_goes_back(tmp_path, monkeypatch):
    place = tmp_path / "page"
    put(output(place, ours), "ours", True)
    found = output(place, ours)

    def swapped(self: Output) -> None:
        place.rename(tmp_path / "moved")
        place.mkdir()
        (place / "mark").write_text("mine")

    monkeypatch.setattr(Output, "_require_unchanged", swapped)
    with pytest.raises(ConfigError, match="it stays as it is"):
        put(found, "ours 2", True)
    assert (text_of(place), text_of(tmp_path / "moved")) == ("mine", "ours")
    assert sorted(os.listdir(tmp_path)) == ["moved", "page"]


def test_a_disk_that_is_full_leaves_what_was_there(tmp_path, folder, monkeypatch):
    place = tmp_path / "page"
    put(output(place, ours), "ours 1", folder)

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(outputs.atomic.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        put(output(place, ours), "ours 2", folder)
    assert text_of(place) == "ours 1"
    assert os.listdir(tmp_path) == ["page"]


def test_a_folder_that_cannot_take_its_place_puts_the_old_one_back(tmp_path, monkeypatch):
    place = tmp_path / "page"
    put(output(place, ours), "ours 1", True)
    real = Path.rename

    def refused(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise OSError(errno.EIO, "Input/output error")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", refused)
    with pytest.raises(OSError, match="Input/output error"):
        put(output(place, ours), "ours 2", True)
    assert text_of(place) == "ours 1"
    assert os.listdir(tmp_path) == ["page"]


def test_without_links_a_file_is_written_as_well(tmp_path, monkeypatch):
    def none(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(outputs.os, "link", none)
    put(output(tmp_path / "page", ours), "ours", False)
    assert os.listdir(tmp_path) == ["page"]


def test_what_is_the_user_s_is_refused_before_any_work(tmp_path):
    (tmp_path / "page").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "absent")
    for name, why in (("page", "page: is yours"), ("link", "is a link"), ("page/x", "cannot be written to")):
        with pytest.raises(ConfigError, match=why):
            output(tmp_path / name, ours)


def test_modes_are_those_of_other_files(tmp_path, folder):
    put(output(tmp_path / "page", ours), "ours", folder)
    (tmp_path / "plain").mkdir() if folder else (tmp_path / "plain").touch()
    assert (tmp_path / "page").stat().st_mode == (tmp_path / "plain").stat().st_mode
