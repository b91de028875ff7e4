"""The folder of an episode, and what applications remember in it. Part of the program in the box."""

from __future__ import annotations

import os
import subprocess
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
    _remove(list(_left(kept)))
    settings = STATE / "CONFIG" / "gtk-3.0" / "settings.ini"
    settings.parent.mkdir(parents=True)
    settings.write_text(SETTINGS)


def _left(kept: frozenset[Path]) -> Iterator[Path]:
    """What is not kept. Inside of kept folders the sockets stay: a server may have made them since."""
    for folder in WRITABLE:
        yield from (place for place in folder.iterdir() if place not in kept)
    for folder in (place for place in kept if place.is_dir() and not place.is_symlink()):
        yield from (place for place in folder.iterdir() if place not in kept and not place.is_socket())


def _remove(places: list[Path]) -> None:
    """Remove files, and folders with all in them, also where the agent took its own rights away.

    By programs that neither recurse nor need whole paths: an agent can nest folders deeper than Python can recurse.
    """
    if not places:
        return
    folders = [str(place) for place in places if place.is_dir() and not place.is_symlink()]
    if folders:
        subprocess.run(["chmod", "-R", "u+rwx", "--", *folders], check=True)
    subprocess.run(["rm", "-rf", "--", *map(str, places)], check=True)
