"""An empty work folder for the next test."""

import os
import stat


def wipe(folder: bytes) -> None:
    """Empty a folder that nobody writes to any more. Raises OSError when something stays.

    A loop, because a program can nest folders deeper than a path may be long or a recursion deep: what a folder
    holds is moved up before the folder is removed. Mode and times of the folder itself carry nothing on either.
    """
    owned = os.stat(folder).st_uid == os.getuid()
    if owned:
        os.chmod(folder, 0o700)
    moved = 0
    while names := os.listdir(folder):
        for name in names:
            path = os.path.join(folder, name)
            if not _openable(path):
                os.unlink(path)
                continue
            for child in os.listdir(path):
                moved += 1
                _openable(os.path.join(path, child))
                os.rename(os.path.join(path, child), os.path.join(folder, _fresh(folder, moved)))
            os.rmdir(path)
    if owned:
        os.utime(folder, (0, 0))


def _openable(path: bytes) -> bool:
    """Is it a folder? Then one that can be read, emptied and moved."""
    folder = stat.S_ISDIR(os.lstat(path).st_mode)
    if folder:
        os.chmod(path, 0o700)
    return folder


def _fresh(folder: bytes, number: int) -> bytes:
    """A name that nothing in the folder has."""
    name = b"\xff%d" % number
    while os.path.lexists(os.path.join(folder, name)):
        name += b"\xff"
    return name
