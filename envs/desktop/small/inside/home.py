"""The folder of an episode, and what applications remember in it. Part of the program in the box."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from faults import BadTask  # type: ignore[import-not-found, unused-ignore]

HOME = Path("/home/user")
RUN = Path("/run/user")
STATE = RUN / "state"
"""What applications remember: settings, caches, histories."""
WRITABLE = (HOME, RUN, Path("/tmp"), Path("/dev/shm"))
"""The folders of the box in which anything can be left."""
SETTINGS = "[Settings]\ngtk-cursor-blink=0\ngtk-enable-animations=0\n"
"""For GTK: a blinking cursor would make equal screens different pictures."""


def present() -> frozenset[Path]:
    """What is there now, in the folders in which anything can be left."""
    return frozenset(place for folder in WRITABLE for place in folder.iterdir())


def fill(task: dict[str, Any], kept: frozenset[Path]) -> None:
    """Remove all but `kept`, and write the files of a task. Raises `BadTask` for files that cannot be."""
    _empty(kept)
    try:
        for name in task.get("folders", []):
            _inside(name).mkdir(parents=True, exist_ok=True)
        for name, content in task.get("files", {}).items():
            path = _inside(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
    except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
        raise BadTask(f"two files of a task have one place: {error.filename}") from None


def _inside(name: str) -> Path:
    path = (HOME / name).resolve()
    if not path.is_relative_to(HOME):
        raise BadTask("a file of a task lies outside the home")
    return path


def _empty(kept: frozenset[Path]) -> None:
    """Remove what an episode left, and write the settings of the next one."""
    HOME.chmod(0o700)
    for place in present() - kept:
        _remove(place)
    settings = STATE / "CONFIG" / "gtk-3.0" / "settings.ini"
    settings.parent.mkdir(parents=True)
    settings.write_text(SETTINGS)


def _remove(place: Path) -> None:
    """Remove a file, or a folder with all in it, also where the agent took its own rights away."""
    if place.is_symlink() or not place.is_dir():
        place.unlink()
        return
    place.chmod(0o700)
    for inside in place.iterdir():
        _remove(inside)
    place.rmdir()
