"""Folders that appear whole or not at all, also when the power fails or the disk is full.

A name is on disk only when its folder is synced, and a file's bytes only when the file is. So everything is written
beside its place, synced, renamed, and the folder that holds the new name is synced before anything older goes.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlanything.config import ConfigError


@contextmanager
def whole(place: Path) -> Iterator[Path]:
    """An empty folder to write into; it becomes `place`, and is on disk, when the block ends well.

    When the block fails, nothing of it stays. What a killed process left of it goes first. Raises `OSError`.
    """
    beside = place.with_name(f".tmp-{place.name}")
    clear(beside)
    make(place.parent)
    beside.mkdir()
    try:
        with system_errors(place):
            yield beside
            sync_tree(beside)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    replace(beside, place)


def replace(new: Path, place: Path) -> None:
    """Put the synced folder `new` at `place`, which is the old one, absent for an instant, or the new one."""
    aside = _aside(place)
    clear(aside)
    if place.exists():
        place.rename(aside)
    new.rename(place)
    sync(place.parent)
    clear(aside)


def remove(folder: Path) -> None:
    """Remove a folder; renamed first, so that a kill or a power loss leaves no half of it to be taken for a whole."""
    aside = _aside(folder)
    clear(aside)
    folder.rename(aside)
    sync(folder.parent)
    clear(aside)


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


def _aside(place: Path) -> Path:
    return place.with_name(f".old-{place.name}")
