"""OSWorld's task files: `evaluation_examples/examples/<application>/<id>.json`, and an index that says which are used.

The paper's extension adds to a file `task_template` (evaluator name -> canonical instruction), `evaluator_list` (the
same names -> evaluators) and `current_task` (one of them -> the instruction of now); Open-AgentRL has such files in the
folder `new_examples`. The files are the user's own: their set-up commands run in the virtual machine.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlanything.core.errors import UserError
from rlanything.core.printable import one_line
from rlanything.files.reader import FileError, parse, read_bytes

MOST_MB = 1
"""Megabytes of a file."""
EXTENSION = ("task_template", "evaluator_list", "current_task")


class TaskFileError(UserError):
    """A folder, an index or a task file cannot be used. The message names it."""


@dataclass(frozen=True, slots=True)
class TaskFile:
    """One task. app: its application; digest: sha256 of the bytes that `content`, the JSON object, was read from."""

    app: str
    name: str
    digest: str
    content: Mapping[str, Any]

    @property
    def templates(self) -> dict[str, str]:
        """Evaluator name -> canonical instruction; empty for a file without the paper's extension."""
        return dict(self.content.get("task_template", {}))

    @property
    def current(self) -> tuple[str, str]:
        """(evaluator name, instruction) of the file; the name is '' for a file without the extension."""
        [(key, text)] = self.content.get("current_task", {"": self.content["instruction"]}).items()
        return key, text


def root(named: str) -> Path:
    """The folder `evaluation_examples`. Raises `TaskFileError` for one that is not there."""
    folder = Path(os.path.expandvars(named)).expanduser()
    if not folder.is_dir():
        hint = "; set the environment variable OSWORLD_DATA to it" if "$" in str(folder) else ""
        hint += "; docs/osworld.md says how to get it"
        raise TaskFileError(f"data = {named}: there is no folder {folder}{hint}")
    return folder


def index(folder: Path, named: str) -> dict[str, list[str]]:
    """Application -> ids of its tasks, in the order of the index. Raises `TaskFileError`."""
    found, _ = _object(folder / named)
    for app, names in found.items():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or not _plain(app):
            raise TaskFileError(f"{folder / named}: {one_line(app)!r} has no list of ids")
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            raise TaskFileError(f"{folder / named}: {one_line(app)!r} names {one_line(twice[0])!r} twice")
    return found


def read(folder: Path, app: str, name: str) -> TaskFile:
    """The task in `folder/<app>/<name>.json`. Raises `TaskFileError`."""
    path = folder / app / f"{name}.json"
    if not _plain(name):
        raise TaskFileError(f"{folder}: {one_line(name)!r} is no id of a task")
    content, digest = _object(path)
    if content.get("id") != name:
        raise TaskFileError(f"{path}: its id is {one_line(repr(content.get('id')))[:80]}")
    if reason := flaw(content):
        raise TaskFileError(f"{path}: {reason}")
    return TaskFile(app, name, digest, content)


def read_all(folder: Path, names: Mapping[str, Sequence[str]]) -> list[TaskFile]:
    """The tasks of an index. Raises `TaskFileError`."""
    return [read(folder, app, name) for app, ids in names.items() for name in ids]


def flaw(content: Mapping[str, Any]) -> str:
    """What the content of a task file lacks, or ''."""
    if not isinstance(content.get("instruction"), str) or not isinstance(content.get("evaluator"), dict):
        return "it has no instruction or no evaluator"
    if not any(key in content for key in EXTENSION):
        return ""
    templates, evaluators, current = (content.get(key) for key in EXTENSION)
    if not isinstance(templates, dict) or not isinstance(evaluators, dict) or not isinstance(current, dict):
        return f"the paper's extension has all of {', '.join(EXTENSION)}"
    if (
        not templates
        or templates.keys() != evaluators.keys()
        or len(current) != 1
        or not current.keys() <= templates.keys()
    ):
        return "task_template and evaluator_list do not have the same names, or current_task none of them"
    if not all(isinstance(text, str) and text.strip() for text in (*templates.values(), *current.values())):
        return "an instruction of task_template or current_task is no text"
    return "" if all(isinstance(one, dict) for one in evaluators.values()) else "an evaluator is no object"


def _object(path: Path) -> tuple[dict[str, Any], str]:
    """(the JSON object in a file, the sha256 of its bytes), of one reading. Raises `TaskFileError`."""
    try:
        data = read_bytes(path, MOST_MB)
    except FileError as error:
        raise TaskFileError(str(error)) from None
    try:
        found = parse(data)
    except FileError as error:
        raise TaskFileError(f"{path}: {error}") from None
    if not isinstance(found, dict):
        raise TaskFileError(f"{path}: no JSON object")
    return found, hashlib.sha256(data).hexdigest()


def _plain(name: str) -> bool:
    """Whether a name can be that of a file or folder here and nowhere else."""
    return bool(name) and len(name) <= 100 and all(sign.isalnum() or sign in "-_" for sign in name)
