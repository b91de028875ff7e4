"""An empty work folder for the next test."""

import os
import stat


def wipe(folder: str) -> None:
    """Empty a folder that nobody writes to any more. Raises OSError when something stays.

    A walk with one open descriptor and no recursion, because a program can nest folders deeper than a path may be
    long, a recursion deep or descriptors many. Mode and times of the folder itself carry nothing on either.
    """
    owned = os.stat(folder).st_uid == os.getuid()
    if owned:
        os.chmod(folder, 0o700)
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    way: list[str] = []
    waiting = [_folders(here)]
    while way or waiting[-1]:
        if waiting[-1]:
            name = waiting[-1].pop()
            os.chmod(name, 0o700, dir_fd=here)
            here = _move(here, name)
            way.append(name)
            waiting.append(_folders(here))
        else:
            here = _move(here, "..")
            os.rmdir(way.pop(), dir_fd=here)
            waiting.pop()
    os.close(here)
    if owned:
        os.utime(folder, (0, 0))


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
