"""Writes the source of each value into the comments of experiments/, from the table `rlanything.config.sources`.

A comment has two parts. The first says what a key means and is written by hand. The second is the source of the value.
It begins with "Paper:", "Reference code:" or "Ours:". This module only writes the second part.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import yaml

from rlanything.config.sources import SETTINGS, SOURCES, Setting
from rlanything.files.atomic import write_text

EVERY = ("config.yaml", "setting/*-paper.yaml")
"""Files in which every key of the table has a source in its comment."""
STATED = (
    "env/alfworld.yaml",
    "env/alfworld_data.yaml",
    "env/coding.yaml",
    "env/coding_data.yaml",
    "env/osworld.yaml",
    "model/*.yaml",
)
"""Files in which every key has a source in its comment if the paper or its code has a value for it."""
OTHER = ("scale/*.yaml", "env/*.yaml", "engine/*.yaml", "setting/*.yaml")
"""Files in which only existing sources are kept up to date."""
GLOBAL = "# @package _global_"
SOURCE = re.compile(r"\b(?:Paper|Reference code|Ours): .*")
WIDTH = 120
COLUMN = 26
"""The column of a new comment."""


def write(folder: Path) -> list[Path]:
    """Bring the comments below `folder` up to date. Returns the files that changed."""
    changed = []
    for path in files(folder):
        old = path.read_text()
        new = commented(path.relative_to(folder), old)
        if new != old:
            write_text(path, new)
            changed.append(path)
    return changed


def files(folder: Path) -> list[Path]:
    """The files below experiments/ (`folder`) whose comments name sources."""
    return sorted({path for pattern in (*EVERY, *STATED, *OTHER) for path in folder.glob(pattern)})


def commented(path: Path, text: str) -> str:
    """The text of a file with up-to-date sources. path: relative to experiments/."""
    setting = _setting(path)
    every, stated = (any(path.match(pattern) for pattern in patterns) for patterns in (EVERY, STATED))
    prefix = "" if path.parent == Path() or text.startswith(GLOBAL) else f"{path.parent.name}."
    lines = text.splitlines()
    for key, at, end in reversed([*_keys(yaml.compose(text), prefix)]):
        if key in SOURCES:
            count, said, column = _comment(lines, at, end)
            source = SOURCE.search(said)
            if source or every or (stated and not SOURCES[key].is_ours(setting)):
                meaning = said[: source.start()].strip() if source else said
                start = lines[at][:end].ljust(column)
                lines[at : at + count] = _lines(start, meaning, SOURCES[key].text(setting))
    return "\n".join(lines) + "\n"


def _setting(path: Path) -> Setting | None:
    """The setting of the paper that a file belongs to; None: it belongs to all settings."""
    return next((setting for setting in SETTINGS if path.stem.startswith(setting)), None)


def _keys(node: yaml.Node | None, prefix: str) -> Iterator[tuple[str, int, int]]:
    """(dotted key, index of its line, column after its value), in the order of the file."""
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        inside = isinstance(value, yaml.MappingNode) and not value.flow_style
        end = key.end_mark.column + 1 if inside else value.end_mark.column
        yield prefix + key.value, key.start_mark.line, end
        yield from _keys(value, f"{prefix}{key.value}.")


def _comment(lines: list[str], at: int, end: int) -> tuple[int, str, int]:
    """(number of lines of a key with its comment, the comment, its column).

    Further lines of the comment have their `#` in the same column."""
    column = lines[at].find("#", end)
    if column < 0:
        return 1, "", max(COLUMN, end + 2)
    count = 1
    while at + count < len(lines) and lines[at + count].strip().startswith("#"):
        if lines[at + count].index("#") != column:
            break
        count += 1
    said = " ".join(line[column:].strip("# ") for line in lines[at : at + count])
    return count, said, column


def _lines(start: str, meaning: str, source: str) -> list[str]:
    """A key with its comment: on one line if it fits, otherwise the source begins on a new line."""
    if meaning and meaning[-1] not in ".:":
        meaning += "."
    room = WIDTH - len(start) - 2
    whole = f"{meaning} {source}".strip()
    wrapped = [whole]
    if len(whole) > room:
        wrapped = [line for part in (meaning, source) for line in _wrap(part, room - 2)]
    first, *rest = wrapped
    return [f"{start}# {first}", *(f"{'':{len(start)}}#   {line}" for line in rest)]


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
