"""Files and folders that a command writes where its user said. What is the user's own is never touched.

`files.atomic` is for places that the project owns, so it takes certain names beside them for itself. Beside a place
that a user named, every name may be theirs. So everything is made inside a hidden folder `.NAME.<random>.tmp`, which
did not exist before. What is at the place is replaced only where it may be, and only if it is still what was there when
the command began: of two commands that write to one place, the second one refuses.

A folder is moved aside before the new one takes its place. A process that is killed between the two leaves both in the
hidden folder. A process that is killed earlier leaves what it had written. Nothing reads or removes them.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rlanything.core.errors import ConfigError
from rlanything.files import atomic

Problem = Callable[[Path], str]
"""Why what is at a place must stay, in words that follow the place; '' where it may be replaced."""
Seen = tuple[int, int, int]
"""Device, inode, and time of the last change in nanoseconds."""
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


@dataclass(frozen=True)
class Output:
    """A place that can be written. seen: what was there when this was made; None for nothing."""

    place: Path
    problem: Problem
    seen: Seen | None

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """An empty folder to write into; it becomes the place, and is on disk, when the block ends well.

        Raises `OSError`, and `ConfigError` where the place is no longer as it was; then it is left alone."""
        with self._hidden() as hidden:
            new = hidden / "new"
            new.mkdir()
            with atomic.system_errors(self.place):
                yield new
                atomic.sync_tree(new)
            self._require_unchanged()
            self._put(new, hidden / "old")

    def write_text(self, text: str) -> None:
        """Write a file of UTF-8 text. Raises as `folder` does. A lone surrogate is written as its escape."""
        with self._hidden() as hidden:
            new = hidden / "new"
            with atomic.system_errors(self.place):
                new.write_bytes(text.encode("utf-8", "backslashreplace"))
                atomic.sync(new)
            self._require_unchanged()
            if self.seen is not None or not self._linked(new):
                new.replace(self.place)
            atomic.sync(self.place.parent)

    @contextmanager
    def _hidden(self) -> Iterator[Path]:
        """A new folder beside the place. It goes when the block ends, unless something of the user is in it."""
        atomic.make(self.place.parent)
        start = f".{self.place.name[:40]}."  # a name has 255 bytes at most
        hidden = Path(tempfile.mkdtemp(dir=self.place.parent, prefix=start, suffix=".tmp"))
        try:
            yield hidden
        finally:
            new = hidden / "new"
            if new.is_dir():
                shutil.rmtree(new, ignore_errors=True)
            new.unlink(missing_ok=True)
            with suppress(OSError):
                hidden.rmdir()

    def _require_unchanged(self) -> None:
        if _seen(self.place) != self.seen or (self.seen is not None and self.problem(self.place)):
            raise self._changed()

    def _put(self, new: Path, old: Path) -> None:
        """The folder `new` at the place; what is there goes to `old` first, and back when anything fails."""
        try:
            if self.seen is not None:
                self.place.rename(old)
                self._require_same(old)
            new.rename(self.place)  # fails on a folder with files in it, and on a file
        except OSError as error:
            self._put_back(old)
            raise (self._changed() if error.errno in _TAKEN else error) from error
        except ConfigError:
            self._put_back(old)
            raise
        atomic.sync(self.place.parent)
        atomic.clear(old)

    def _require_same(self, old: Path) -> None:
        """Something else may have come to the place after it was looked at."""
        found = _seen(old)
        if found is None or self.seen is None or found[:2] != self.seen[:2]:
            raise self._changed()

    def _put_back(self, old: Path) -> None:
        if old.exists() and not self.place.exists():
            old.rename(self.place)

    def _linked(self, new: Path) -> bool:
        """Whether the file is at the place now; False where the file system has no links. It overwrites nothing."""
        try:
            os.link(new, self.place)
        except FileExistsError as error:
            raise self._changed() from error
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return False
        return True

    def _changed(self) -> ConfigError:
        return ConfigError(
            f"--output {self.place}: was made or changed while this command ran; it stays as it is, and nothing is "
            "written"
        )


def output(place: Path, problem: Problem) -> Output:
    """The place, for a command to check before its work. Raises `ConfigError` unless it can be written, or replaced."""
    if place.is_symlink():
        raise ConfigError(f"--output {place}: is a link; name what it points to, or another place")
    whole = place.resolve()
    atomic.check_writable(whole.parent)
    if whole.exists() and (why := problem(whole)):
        raise ConfigError(f"--output {place}: {why}")
    return Output(whole, problem, _seen(whole))


def _seen(place: Path) -> Seen | None:
    with suppress(FileNotFoundError):
        found = place.lstat()
        return found.st_dev, found.st_ino, found.st_mtime_ns
    return None
