"""What a disk may hold after the power failed: a model of the page cache, kept while a program really runs.

What is promised, and no more: a file's bytes are on disk when the file was synced, the names in a folder when the
folder was. Of what came later any part may be there: of a folder any state that it had since its last sync (the order
within a folder is kept, as journals do), of a file its new length without its bytes, a first part of them, or all.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from crashpoints import at_change

Names = dict[str, int]
"""The names in a folder, with the number of the file or folder that each belongs to."""
Disk = dict[str, bytes | None]
"""Paths below the folder that is watched, with what a file holds; None for a folder."""


ALL = 2.0
END = -1
"""The change that never came: power lost after the work."""


@dataclass
class Folder:
    """The states that a folder had since it was synced, oldest first."""

    states: list[Names]


@dataclass
class File:
    """A file: what of it is on disk for sure, and what a reader sees now."""

    synced: bytes
    now: bytes
    stamp: tuple[int, int]
    """Size and time of change when it was read last."""


class Cache:
    """Watches everything below `root`, except links; `lost` tells what a power loss now would leave."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.things: dict[int, Folder | File] = {}
        self.pins: list[int] = []  # open handles, so that no number is given to another file
        self.top = self._look(root, settled=True)

    def look(self) -> None:
        """Take note of what changed."""
        self._look(self.root, settled=False)

    def synced(self, handle: int) -> None:
        """The file or folder behind `handle` was synced."""
        self.look()
        thing = self.things.get(os.fstat(handle).st_ino)
        if isinstance(thing, Folder):
            del thing.states[:-1]
        elif thing is not None:
            thing.synced = thing.now

    def lost(self, chance: random.Random, survives: float) -> Disk:
        """A disk after a power loss; of what is not synced, a share of about `survives` is there nevertheless.

        ALL is what a kill leaves: the files as every other process sees them.
        """
        disk: Disk = {}
        self._restore(self.top, "", disk, chance, survives)
        return disk

    def close(self) -> None:
        """Forget everything."""
        for handle in self.pins:
            os.close(handle)

    def _look(self, path: Path, *, settled: bool) -> int:
        number = path.stat().st_ino
        new = number not in self.things
        if new:
            self.pins.append(os.open(path, os.O_PATH))
        if path.is_file():
            self._look_into(path, number, settled=settled)
            return number
        folder = self.things.setdefault(number, Folder([] if settled else [{}]))
        assert isinstance(folder, Folder)
        names = {
            entry.name: self._look(Path(entry.path), settled=settled)
            for entry in os.scandir(path)
            if not entry.is_symlink()
        }
        if not folder.states or folder.states[-1] != names:
            folder.states.append(names)
        return number

    def _look_into(self, path: Path, number: int, *, settled: bool) -> None:
        status = path.stat()
        stamp = (status.st_size, status.st_mtime_ns)
        known = self.things.get(number)
        if isinstance(known, File) and known.stamp == stamp:
            return
        now = path.read_bytes()
        synced = known.synced if isinstance(known, File) else now if settled else b""
        self.things[number] = File(synced, now, stamp)

    def _restore(self, number: int, path: str, disk: Disk, chance: random.Random, survives: float) -> None:
        thing = self.things[number]
        if isinstance(thing, File):
            disk[path] = _some_of(thing, chance, survives)
            return
        if path:
            disk[path] = None
        for name, inside in _some_state(thing, chance, survives).items():
            self._restore(inside, f"{path}/{name}".lstrip("/"), disk, chance, survives)


def _some_state(folder: Folder, chance: random.Random, survives: float) -> Names:
    if survives == 0.0:
        return folder.states[0]
    return folder.states[-1] if chance.random() < survives else chance.choice(folder.states)


def _some_of(file: File, chance: random.Random, survives: float) -> bytes:
    if survives == ALL:
        return file.now
    if survives == 0.0 or file.synced == file.now:
        return file.synced
    torn = (file.synced, b"", b"\0" * len(file.now), file.now[: len(file.now) // 2])
    return file.now if chance.random() < survives / 2 else chance.choice(torn)


def power_losses(
    root: Path, work: Callable[[], None], seed: int, parts: Sequence[tuple[Any, str]] = ()
) -> Iterator[tuple[int, Disk]]:
    """Do `work`, which writes below `root`; yield (change, disk) for a kill and many power losses before each change.

    With `parts`, only of changes inside these functions. Of equal disks only the first is told. They are yielded after
    the work is done.
    """
    cache, chance = Cache(root), random.Random(seed)
    found: dict[bytes, tuple[int, Disk]] = {}

    def before(n: int) -> None:
        cache.look()
        for survives in (ALL, 0.0, 1.0, 1.0, 0.5, 0.5):
            disk = cache.lost(chance, survives)
            found.setdefault(hash_of(disk), (n, disk))

    with syncs_told(cache), only(parts, at_change(before)):
        work()
    for _ in range(4):
        before(END)
    cache.close()
    yield from found.values()


@contextlib.contextmanager
def only(parts: Sequence[tuple[Any, str]], watch: at_change) -> Iterator[None]:
    """Watch in these functions, named by owner and name; everywhere when there are none. Watching is slow."""
    with contextlib.ExitStack() as stack:
        for owner, name in parts:
            call = getattr(owner, name)
            stack.enter_context(patch.object(owner, name, watched(call, watch)))
        if not parts:
            stack.enter_context(watch)
        yield


def watched(call: Callable[..., None], watch: at_change) -> Callable[..., None]:
    def inside(*args: Any) -> None:
        with watch:
            call(*args)

    return inside


@contextlib.contextmanager
def syncs_told(cache: Cache) -> Iterator[None]:
    """In this block the cache hears of every sync."""
    real = os.fsync

    def fsync(handle: int) -> None:
        real(handle)
        cache.synced(handle)

    os.fsync = fsync
    try:
        yield
    finally:
        os.fsync = real


def write(disk: Disk, root: Path) -> None:
    """Make `root` hold that disk."""
    root.mkdir()
    for path, data in disk.items():  # a folder comes before what is in it
        if data is None:
            (root / path).mkdir()
        else:
            (root / path).write_bytes(data)


def hash_of(disk: Disk) -> bytes:
    """Equal for equal disks."""
    made = hashlib.sha256()
    for path in sorted(disk):
        data = disk[path]
        made.update(f"{path}\0{'folder' if data is None else len(data)}\0".encode() + (data or b""))
    return made.digest()
