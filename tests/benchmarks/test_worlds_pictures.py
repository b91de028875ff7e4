"""The pictures of docs/gui.md: they are small, shown, and made by a command."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from benchmarks.pages import worlds
from envs.desktop.small import box
from rlanything.core.errors import MachineError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["desktop", "web"])
def test_a_picture_is_small_and_shown_on_its_page(name):
    file = ROOT / worlds.FOLDER / f"{name}.png"
    assert file.stat().st_size < 150_000
    with Image.open(file) as picture:
        assert min(picture.size) > 300
    assert f"](gui/{name}.png)" in (ROOT / "docs" / "gui.md").read_text()


def test_tiles_lie_in_rows_with_a_gap():
    tiles = [Image.new("RGB", (10, 6), colour) for colour in ("red", "green", "blue")]
    made = worlds.side_by_side(tiles, 2).convert("RGB")
    assert made.size == (20 + worlds.GAP, 12 + worlds.GAP)
    places = [(0, 0), (10 + worlds.GAP, 0), (0, 6 + worlds.GAP)]
    assert [made.getpixel(place) for place in places] == [(255, 0, 0), (0, 128, 0), (0, 0, 255)]
    assert made.getpixel((11, 0)) == made.getpixel((19 + worlds.GAP, 19)) == (255, 255, 255)


def test_an_unknown_world_is_refused_with_those_that_are_known(capsys):
    with pytest.raises(SystemExit):
        worlds.main(["desktops"])
    assert "desktops: must be one of desktop, web" in capsys.readouterr().err


def test_what_is_not_installed_is_said(tmp_path, monkeypatch, capsys):
    def missing():
        raise MachineError("the desktop needs: apt install xvfb")

    monkeypatch.setattr(worlds, "desktops", missing)
    assert worlds.main(["desktop", "--output", str(tmp_path)]) == 2
    assert "apt install xvfb" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.skipif(bool(box.missing()), reason=box.missing() or "everything is there")
def test_the_command_takes_the_picture_of_a_desktop(tmp_path):
    assert worlds.main(["desktop", "--output", str(tmp_path)]) == 0
    with (
        Image.open(tmp_path / "desktop.png") as made,
        Image.open(ROOT / worlds.FOLDER / "desktop.png") as kept,
    ):
        assert made.size == kept.size
