"""Files and folders that appear whole or not at all, also when the power fails or the disk is full.

One guarantee for all of them: a reader meets what was there before or all of the new, never a part. When the call
returns, the new is on disk. When it fails, nothing of it stays. What a killed process left beside a place is not read
by anybody, and goes with the next write (folders) or with `clear_leftovers` (files).

A name is on disk only when its folder is synced, and a file's bytes only when the file is. So everything is written
beside its place, synced, renamed, and the folder that holds the new name is synced before anything older goes.
"""

from __future__ import annotations

import glob
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rlanything.core.errors import ConfigError
from rlanything.core.timing import phase

_OLD = ".old-"
"""Before the name of a folder that makes place for a new one."""
_BESIDE = re.compile(r"\.\d+-[0-9a-f]{8}\.tmp")
"""What the name that `beside` gives a file adds to the file's own: the number of the process, and random digits."""


def own_folder(place: Path) -> None:
    """Raise `ConfigError` where a folder of results is a link: hashes would miss its files, and it cannot be replaced.

    Links of single files are followed: DVC's cache may be made of them.
    """
    if place.is_symlink() and not place.is_file():
        raise ConfigError(
            f"{place}: a link to {place.resolve()}; its files would be in no hash, and new results could not replace "
            "it. Replace the link by a real folder; to use another disk, move the whole project there"
        )


def write_text(path: Path, text: str) -> None:
    """Write a file of UTF-8 text. Raises `OSError` naming the file.

    A lone surrogate, which UTF-8 lacks, is written as its escape. In JSON the escape stands for the same text.
    """
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file. Raises `OSError` naming the file."""
    with replacing(path) as file:
        file.write(data)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write into; it becomes `path` when the block ends well. Raises `OSError` naming the file."""
    with beside(path) as temporary, temporary.open("wb") as file:
        yield file


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """The name of a file that the block makes; it becomes `path` when the block ends well. Raises `OSError`.

    An existing `path` is never opened for writing: it may be a link into DVC's cache.
    """
    make(path.parent)
    # Two machines that share the folder may have processes of the same number.
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with system_errors(path):
            yield temporary
            sync(temporary)
        temporary.replace(path)
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def clear_leftovers(path: Path) -> None:
    """Remove what killed writers of a file left beside it; for one who holds the lock of all that write it.

    Only the names that `beside` gives go: a user's own `.report.md.draft.tmp` stays.
    """
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        if _BESIDE.fullmatch(left.name.removeprefix(f".{path.name}")):
            left.unlink(missing_ok=True)


@contextmanager
def whole(place: Path) -> Iterator[Path]:
    """An empty folder to write into; it becomes `place`, and is on disk, when the block ends well.

    When the block fails, nothing of it stays. What a killed process left of it goes first. Raises `OSError`.
    """
    temporary = place.with_name(f".tmp-{place.name}")
    make(place.parent)
    _put_back(place)
    clear(temporary)
    temporary.mkdir()
    try:
        with system_errors(place):
            yield temporary
            sync_tree(temporary)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    replace(temporary, place)


def replace(new: Path, place: Path) -> None:
    """Put the synced folder `new` at `place`, which is the old one, absent for an instant, or the new one."""
    aside, gone = _aside(place), _gone(place)
    clear(aside)
    clear(gone)
    if place.exists():
        place.rename(aside)
    new.rename(place)
    sync(place.parent)
    if aside.exists():
        aside.rename(gone)  # a kill may leave a part of it, and what is set aside can be put back
    clear(gone)


def remove(folder: Path) -> None:
    """Remove a folder. It is renamed first, so that a kill cannot leave half of it under its name."""
    clear_removed(folder)
    gone = _gone(folder)
    folder.rename(gone)
    sync(folder.parent)
    clear(gone)


def move(folder: Path, place: Path) -> None:
    """Give a folder the name `place`, which must be free, with one rename. Both names are on disk at the end."""
    make(place.parent)
    folder.rename(place)
    sync(place.parent)
    sync(folder.parent)


def clear_removed(folder: Path) -> None:
    """Go on with a `remove` of this folder that was killed; for one who holds the lock of all that remove it."""
    clear(_gone(folder))


def clear(folder: Path) -> None:
    """Remove what nobody reads: a half-written folder, or one that was moved aside."""
    if folder.exists():
        shutil.rmtree(folder)


def make(folder: Path) -> None:
    """Make a folder and those above it, the names of all on disk."""
    if folder.is_dir():
        return
    make(folder.parent)
    folder.mkdir(exist_ok=True)
    sync(folder.parent)


def copy_tree(source: Path, target: Path) -> None:
    """Copy a folder's files; stops at the first that fails and names it, which `shutil.copytree` does not."""
    target.mkdir(exist_ok=True)
    for entry in sorted(source.iterdir()):
        if entry.is_dir():
            copy_tree(entry, target / entry.name)
        else:
            with system_errors(target / entry.name):
                shutil.copy2(entry, target / entry.name)


def sync_tree(folder: Path) -> None:
    """Wait until everything below `folder`, and `folder`, is on disk."""
    for path in sorted(folder.rglob("*")):
        sync(path)
    sync(folder)


def sync(path: Path) -> None:
    """Wait until a file's bytes, or a folder's names, are on disk."""
    with phase("sync"):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def system_errors(path: Path) -> Iterator[None]:
    """What the operating system refuses leaves the block as `OSError` with a file name, whoever wrote.

    Libraries written in Rust (safetensors, tokenizers) raise errors of their own that end in `(os error <number>)`.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise
    except Exception as error:
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error


def check_writable(folder: Path) -> None:
    """Raise `ConfigError` unless files can be made in `folder`, or in the nearest one above it that exists."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
        raise ConfigError(
            f"{there}: cannot be written to (mounted read-only, not yours, or no folder), and {folder} must be"
        )


def _put_back(place: Path) -> None:
    """The old folder at `place` again, when a kill left it set aside and the new one not in its place."""
    aside = _aside(place)
    if aside.exists() and not place.exists():
        aside.rename(place)
        sync(place.parent)


def set_aside(folder: Path) -> dict[Path, Path]:
    """Place in `folder` -> where its old content is, for those that a kill between two renames left without any."""
    found = {path.with_name(path.name.removeprefix(_OLD)): path for path in sorted(folder.glob(f"{_OLD}*"))}
    return {place: aside for place, aside in found.items() if not place.exists()}


def _gone(folder: Path) -> Path:
    return folder.with_name(f".gone-{folder.name}")  # not set aside: nothing puts it back


def _aside(place: Path) -> Path:
    return place.with_name(f"{_OLD}{place.name}")
