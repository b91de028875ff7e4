"""An empty work folder for the next test."""

import os
import stat

from envs.coding.sandbox.inside.seal import SEALED


class WorkFolder:
    """The folder in which tests run. Names in it are read by forks only: they may say what a test has seen."""

    def __init__(self, path: str) -> None:
        self.path = path
        os.chdir(path)
        wipe(path)
        self._empty = os.stat(path).st_size

    def clear(self) -> None:
        """Empty it. Raises OSError when something stays."""
        if not self._is_empty():
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    wipe(self.path)
                    code = 0
                finally:
                    os._exit(code)
            if os.waitpid(pid, 0)[1]:
                raise OSError(f"{self.path} cannot be emptied")
        reset(self.path)

    def _is_empty(self) -> bool:
        """Whether nothing is in it, found without a name. An ordinary folder is made anew for that."""
        if SEALED:  # a folder in memory, which grows with each entry
            return os.stat(self.path).st_size == self._empty
        try:
            os.rmdir(self.path)
        except OSError:
            return False
        os.mkdir(self.path, 0o700)
        os.chdir(self.path)
        return True

    def remove(self) -> None:
        """Remove it where it is an ordinary one; the harness may have been killed."""
        if not SEALED:
            self.clear()
            os.rmdir(self.path)


def wipe(folder: str) -> None:
    """Empty a folder that nobody writes to any more. Raises OSError when something stays.

    A walk with one open descriptor and no recursion, because a program can nest folders deeper than a path may be
    long, a recursion deep or descriptors many.
    """
    reset(folder)
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


def reset(folder: str) -> None:
    """Mode and times of a folder of one's own, so that they carry nothing on."""
    if os.stat(folder).st_uid == os.getuid():
        os.chmod(folder, 0o700)
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
