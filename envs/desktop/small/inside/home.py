"""The folder of an episode, and what applications remember in it. Part of the program in the box."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
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
    """What is there now, in the folders in which anything can be left, but what applications remember."""
    walked = (entry for folder in WRITABLE for entry in os.walk(folder))
    found = (Path(here, name) for here, folders, files in walked for name in (*folders, *files))
    return frozenset(place for place in found if not place.is_relative_to(STATE))


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
    for place in _left(kept):
        _remove(place)
    settings = STATE / "CONFIG" / "gtk-3.0" / "settings.ini"
    settings.parent.mkdir(parents=True)
    settings.write_text(SETTINGS)


def _left(kept: frozenset[Path]) -> Iterator[Path]:
    """What is not kept. Inside of kept folders the sockets stay: a server may have made them since."""
    for folder in WRITABLE:
        yield from (place for place in folder.iterdir() if place not in kept)
    for folder in (place for place in kept if place.is_dir() and not place.is_symlink()):
        yield from (place for place in folder.iterdir() if place not in kept and not place.is_socket())


def _remove(place: Path) -> None:
    """Remove a file, or a folder with all in it, also where the agent took its own rights away.

    A walk with one open descriptor and no recursion, because an agent can nest folders deeper than a path may be long
    or a recursion deep.
    """
    if place.is_symlink() or not place.is_dir():
        place.unlink()
        return
    place.chmod(0o700)
    here = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    way: list[str] = []
    waiting = [_folders(here)]
    while way or waiting[-1]:
        if waiting[-1]:
            way.append(waiting[-1].pop())
            os.chmod(way[-1], 0o700, dir_fd=here)
            here = _move(here, way[-1])
            waiting.append(_folders(here))
        else:
            here = _move(here, "..")
            os.rmdir(way.pop(), dir_fd=here)
            waiting.pop()
    os.close(here)
    place.rmdir()


def _move(here: int, name: str) -> int:
    """The descriptor of a folder beside or above `here`, which is closed."""
    there = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
    os.close(here)
    return there


def _folders(here: int) -> list[str]:
    """The folders in a folder, after everything else in it was removed."""
    found = []
    for name in os.listdir(here):
        if stat.S_ISDIR(os.lstat(name, dir_fd=here).st_mode):
            found.append(name)
        else:
            os.unlink(name, dir_fd=here)
    return found
