"""Where a command of buffers may write: it replaces what such a command wrote, and nothing else (`files.outputs`)."""

from __future__ import annotations

from pathlib import Path

from rlanything.buffer.fields import TaskBufferError
from rlanything.core.errors import ConfigError
from rlanything.files.outputs import Output, Problem, output
from rlanything.files.reader import opened

_START, _FOOT = b"<!doctype html>", b'<p class="quiet">rlanything buffer diff'
"""How the page of a comparison begins, and the line before its data, by which it is known again."""
_BEFORE_DATA = 1 << 18
"""Bytes of a page that are looked through for that line: style, difficulty and concentration take fewer."""


def free_page(file: Path) -> Output:
    """The place of the page of a comparison. Raises `TaskBufferError` for one that holds something else."""
    return free_place(file, _no_page, "--html")


def free_place(place: Path, problem: Problem, argument: str) -> Output:
    """As `output`, for an argument that is not called `--output`. Raises `TaskBufferError`."""
    try:
        return output(place, problem)
    except ConfigError as error:
        text = str(error)
        named = text.startswith("--output ")  # one about the folder above the place names the folder alone
        raise TaskBufferError(f"{argument}{text.removeprefix('--output')}" if named else text) from None


def _no_page(file: Path) -> str:
    if file.is_dir():
        return "is a folder; name a file, e.g. diff.html"
    with opened(file) as page:
        found = page.read(_BEFORE_DATA)
    ours = found.startswith(_START) and _FOOT in found
    return "" if ours else "exists and is no page of `buffer diff`; name another file"
