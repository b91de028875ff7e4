"""What the world takes as a task. Part of the program in the box.

Everything that can be wrong with a task alone is found here, before anything is started. So what goes wrong later is a
fault of the desktop.
"""

from __future__ import annotations

from typing import Any

import hands  # type: ignore[import-not-found, unused-ignore]
import verdicts  # type: ignore[import-not-found, unused-ignore]
from faults import BadTask, Refused  # type: ignore[import-not-found, unused-ignore]

KEYS = ("launch", "begin", "files", "folders", "checks", "patience")


def check(task: Any) -> None:
    """Raise `BadTask` for a task that is none. Its `launch` and `checks` must be there, the rest may be."""
    if not isinstance(task, dict) or not task.keys() <= set(KEYS):
        raise BadTask(f"a task is an object with keys among {', '.join(KEYS)}")
    if not _texts(task.get("launch")) or not task["launch"]:
        raise BadTask("launch must be a program and its arguments, all texts")
    for name in ("begin", "folders"):
        if not _texts(task.get(name, [])):
            raise BadTask(f"{name} must be a list of texts")
    files = task.get("files", {})
    if not isinstance(files, dict) or not _texts([*files, *files.values()]):
        raise BadTask("files must be names and their texts")
    if not isinstance(task.get("patience", 1), int | float):
        raise BadTask("patience must be a number of seconds")
    _keys(task.get("begin", []))
    checks = task.get("checks")
    if not isinstance(checks, list):
        raise BadTask("checks must be a list")
    for one in checks:
        if reason := verdicts.flaw(one):
            raise BadTask(reason)


def _texts(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(one, str) and "\0" not in one for one in found)


def _keys(pressed: list[str]) -> None:
    try:
        for keys in pressed:
            for name in keys.split("+"):
                hands.key(name)
    except Refused as error:
        raise BadTask(f"begin: {error}") from None
